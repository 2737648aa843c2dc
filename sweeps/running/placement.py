"""Placement: where the runs of a launch go. No Ray."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, Self

from sweeps.machine.free_memory import free_bytes
from sweeps.machine.processor import usable_cpus
from sweeps.running.retries import REDUCE
from sweeps.study.study import Study

Growth = Literal["none", "by hand", "autoscaler"]
"""Ways in which nodes may join a cluster: none (it is our own), started by a person, or started by
Ray's autoscaler for runs that wait."""


class PlacementError(Exception):
    """Runs that cannot be placed as asked for."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Node:
    """The resources of a cluster node that runs can use."""

    cpus: float
    gpus: float
    memory: float = math.inf
    """Bytes that runs may reserve."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Slots:
    """The slots of a launch on the nodes of a cluster."""

    count: int
    """Runs trained side by side on these nodes, and on those that an autoscaler starts for them."""
    limit: int | None
    """Runs trained side by side at most; None: as many as there is room for, also on nodes that
    join later."""
    cpus_per_run: int
    gpus_per_run: float
    on_gpu: bool
    """True if runs compute on the GPU they have a share of."""
    memory_per_run: int = 0
    """Bytes reserved for a run; 0: it reserves none."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Placement:
    """Placement of runs: on the cluster that RAY_ADDRESS names, else on one started here."""

    slots: int | None = None
    """Runs trained side by side; None: what the nodes hold, and those that join later."""
    gpus_per_run: float | None = None
    """GPUs of one run, 0, 1 or 1/k; None: 1 where there are GPUs, else 0."""
    cpus_per_run: int = 1
    """CPUs reserved for one run. It computes in one thread all the same: another number of threads
    would move last bits."""
    is_auto: bool = False
    """True if runs that lack memory are to be tried again with more of a GPU (`with_more_room`)."""
    memory_per_run: int = 0
    """Bytes that a run was measured to take on a CPU; 0: it was not, and reserves none."""
    device: Literal["cpu"] | None = None
    """`cpu` makes runs compute there though they reserve GPUs, to rehearse a placement."""

    def __post_init__(self) -> None:
        """Check the share of a GPU.

        Raises:
            PlacementError: If it is none that fills GPUs evenly.
        """
        share = self.gpus_per_run
        if share is None or share == 0:
            return
        if not 0 < share <= 1 or abs(round(1 / share) * share - 1) > _ROUNDING:
            raise PlacementError(f"gpus_per_run must be 0, 1 or 1/k, got ({share}).")

    def auto(self) -> Self:
        """Return the placement that finds the share of a GPU itself, from the smallest up."""
        return replace(self, gpus_per_run=LEAST_SHARE, is_auto=True)

    def with_more_room(self, had: float) -> Self | None:
        """Return where runs go that lacked memory; None if they cannot have more of a GPU.

        Args:
            had: Their share; 0 if they were on CPUs.
        """
        if not self.is_auto or not 0 < had < 1:
            return None
        return replace(self, gpus_per_run=1 / max(1, round(1 / had) // 2))

    def cpus_here(self, runs: int) -> int:
        """Return the CPUs of a cluster of our own: those that runs can take.

        Ray begins a process for each of them at once.

        Args:
            runs: That are to be trained.
        """
        here = usable_cpus()
        slots = self.slots or here // self.cpus_per_run
        if self.memory_per_run and not self.slots:
            slots = min(slots, max(1, free_bytes() // self.memory_per_run))
        if not slots:
            return here  # no room for a run, as `on` will say
        return min(slots, max(1, runs)) * self.cpus_per_run

    def on(self, nodes: Sequence[Node], *, runs: int, growth: Growth) -> Slots:
        """Return the slots on these nodes.

        Ray puts every share on the fullest GPU of a node that has room for it, so GPUs fill evenly
        only when all of their shares are taken. Runs therefore get the smallest share, down to
        the one asked for, of which there are runs, and CPUs on every node, to fill all GPUs.

        Args:
            nodes: The nodes that are up.
            runs: Runs that wait for a slot.
            growth: How nodes may join.

        Raises:
            PlacementError: If no node has room for a run: Ray would wait for ever. Or if runs would
                train on CPUs, or wait for GPUs, and it is not clear that this is wanted.
        """
        share = self._share(nodes, min(runs, self.slots or runs), growth)
        room = sum(self._room(node, share) for node in nodes)
        if not any(node.gpus for node in nodes):
            self._require_decision(room, growth)
        count = self.slots or room
        if growth == "autoscaler" and share:
            count = self.slots or max(room, min(max(1, runs), _MOST_WAITING))
        elif not room and not (self.slots and growth != "none"):
            largest = max(nodes, key=lambda node: (node.gpus, node.cpus))
            if share == 0 and any(node.cpus >= self.cpus_per_run for node in nodes):
                raise PlacementError(
                    f"no node has memory for a run: a run takes {self.memory_per_run / 1e9:.1f} "
                    f"GB, measured by a step of training, and the largest node has "
                    f"{max(node.memory for node in nodes) / 1e9:.1f} GB free; {REDUCE}, or add "
                    "--slots 1 to try"
                )
            raise PlacementError(
                f"no node has room for a run: a run takes {share:g} GPUs and {self.cpus_per_run} "
                f"CPUs, the largest node has {largest.gpus:g} GPUs and {largest.cpus:g} CPUs"
                + (
                    ""
                    if growth == "none"
                    else "; add --slots with the runs that nodes to join hold"
                )
            )
        # An autoscaler would start nodes with GPUs for runs on CPUs that find no room.
        grows = growth == "by hand" or (growth == "autoscaler" and share > 0)
        return Slots(
            count=count,
            limit=self.slots if grows else count,
            cpus_per_run=self.cpus_per_run,
            gpus_per_run=share,
            on_gpu=share > 0 and self.device is None,
            memory_per_run=0 if share or self.slots else self.memory_per_run,
        )

    def _require_decision(self, room: int, growth: Growth) -> None:
        """Check that a user of a joined cluster without a GPU said what to do.

        Raises:
            PlacementError: If not.
        """
        asked = self.gpus_per_run
        if asked is None and growth == "autoscaler":
            raise PlacementError(
                "this cluster has no GPU now, and its autoscaler may start nodes with GPUs; add "
                "--gpus-per-run 1 to wait for them, or --gpus-per-run 0 to train on CPUs"
            )
        if asked is None and growth == "by hand" and (self.slots or 0) > room:
            raise PlacementError(
                f"this cluster has no GPU and room for {room} runs on CPUs now, and --slots "
                f"{self.slots} lets it grow; add --gpus-per-run 1 to wait for nodes with GPUs, or "
                "--gpus-per-run 0 to train on CPUs"
            )
        if asked and not self.is_auto and growth == "by hand" and not self.slots:
            raise PlacementError(
                f"--gpus-per-run {asked:g}: no node of this cluster has a GPU, and no autoscaler "
                "starts one; remove --gpus-per-run to train on CPUs, or, if you are about to join "
                "nodes with GPUs, add --slots with the runs that they will hold"
            )

    def _share(self, nodes: Sequence[Node], runs: int, growth: Growth) -> float:
        with_gpus = [node for node in nodes if node.gpus]
        asked = self.gpus_per_run
        if asked is None:
            return 1.0 if with_gpus else 0.0
        if self.is_auto and not with_gpus and growth != "autoscaler":
            return 0.0
        if asked in {0, 1} or not with_gpus:
            return asked
        shares = min(
            round(1 / asked),
            int(runs // sum(node.gpus for node in with_gpus)),
            *(int(node.cpus // (self.cpus_per_run * node.gpus)) for node in with_gpus),
        )
        return 1 / max(1, shares)

    def _room(self, node: Node, share: float) -> int:
        by_cpus = int(node.cpus // self.cpus_per_run)
        if share:
            return min(by_cpus, int(node.gpus * round(1 / share)))
        if not self.memory_per_run or self.slots:
            return by_cpus
        return int(min(by_cpus, node.memory // self.memory_per_run))


def require_gpus(study: Study, slots: Slots) -> None:
    """Check that runs spend what the budget of their study limits.

    Raises:
        PlacementError: If GPU-hours are limited and runs have no GPU: they would never be spent.
    """
    budget, path = study.budget, "budget"
    if study.search is not None:
        budget, path = study.search.budget, "search.budget"
    if budget.gpu_hours is not None and not slots.gpus_per_run:
        raise PlacementError(
            f"a budget of GPU-hours needs runs on GPUs, got ({path}.gpu_hours="
            f"{budget.gpu_hours:g}, gpus_per_run={slots.gpus_per_run:g}); "
            f"use {path}.hours, which counts everywhere."
        )


_MOST_WAITING = 64
"""Runs that wait for nodes of an autoscaler at a time, if `--slots` does not say how many."""

LEAST_SHARE = 1 / 8
"""Share of a GPU with which `auto` begins; it doubles."""

_ROUNDING = 2e-2
"""Shares are typed: 0.33 means a third."""
