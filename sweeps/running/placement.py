"""Placement: decides how many runs train in parallel, and how many CPUs and GPUs each gets.

This module does not use Ray.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from sweeps.machine.resources import sign_of_gpus, usable_cpus
from sweeps.study.study import Study

Growth = Literal["none", "by hand", "autoscaler"]
"""Ways in which nodes may join a cluster. `none`: never (a cluster started by us). `by hand`:
people start nodes. `autoscaler`: Ray starts nodes for waiting runs."""


class PlacementError(Exception):
    """Runs cannot get the requested CPUs or GPUs; the message says what to do."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Node:
    """Resources of a cluster node that runs may use."""

    cpus: float
    gpus: float
    kinds: frozenset[str] = frozenset()
    """Names of Ray's resources, and labels as `NAME=VALUE`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Slots:
    """The number of parallel runs on a cluster, and the resources of each run."""

    count: int
    """Number of runs trained in parallel on the present nodes, and on nodes that an autoscaler
    starts for them."""
    limit: int | None
    """Largest number of parallel runs; None for as many as fit, also on nodes that join later."""
    gpus_per_run: float
    on_gpu: bool
    """True if runs compute on a GPU that is reserved for them."""
    kind: str | None = None
    """Ray resource or label of the nodes on which runs train; None for all nodes."""
    ahead: int = 0
    """Number of further runs that may wait, so that an autoscaler starts nodes for them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Placement:
    """The placement that command-line options request: parallel runs, and resources per run."""

    slots: int | None = None
    """Number of parallel runs. None for as many as fit, including on nodes that join later."""
    gpus_per_run: float | None = None
    """GPUs per run: 0, 1 or a fraction 1/k. None for 1 if there are GPUs, else 0."""
    device: Literal["cpu"] | None = None
    """`cpu` makes runs compute on the CPU although GPUs are reserved for them, for tests of a
    placement. None for the reserved device."""
    kind: str | None = None
    """Kind of node on which all runs train: an accelerator type, another resource of Ray, or a
    label `NAME=VALUE`. None for all nodes."""

    def __post_init__(self) -> None:
        share = self.gpus_per_run
        if share and (not 0 < share <= 1 or abs(round(1 / share) * share - 1) > _ROUNDING):
            raise PlacementError(
                f"--gpus-per-run must be 0, 1 or 1/k for a whole number k, got ({share})."
            )

    def cpus_here(self, runs: int) -> int:
        """Return the number of CPUs for a Ray cluster on this machine: as many as runs can use.

        Ray starts one process per CPU right away.
        """
        return min(self.slots or usable_cpus(), max(1, runs))

    def on(self, nodes: Sequence[Node], *, runs: int, growth: Growth) -> Slots:
        """Decide how many runs train in parallel on some nodes, and with which resources.

        All runs get the same share of a GPU: the requested one, or a larger one with which as many
        runs fit. Ray fills one GPU after the other, so otherwise some would be full and others
        idle.
        """
        kind, nodes = self._chosen(nodes, growth)
        share = self._share(nodes, min(runs, self.slots or runs))
        room = sum(self._room(node, share) for node in nodes)
        if not any(node.gpus for node in nodes):
            self._require_decision(room, growth)
        count = self.slots or room
        if growth == "autoscaler" and share:
            count = self.slots or max(room, min(max(1, runs), _MOST_WAITING))
        elif not room and not (self.slots and growth != "none"):
            largest = max(nodes, key=lambda node: (node.gpus, node.cpus))
            text = f"no node has room for a run: a run takes {share:g} GPUs and 1 CPU, the largest "
            text += f"node has {largest.gpus:g} GPUs and {largest.cpus:g} CPUs"
            if growth != "none":
                text += "; if larger nodes will join, add --slots N (N runs at a time)"
            raise PlacementError(text)
        # For waiting runs on CPUs an autoscaler would start nodes with GPUs.
        grows = growth == "by hand" or (growth == "autoscaler" and share > 0)
        return Slots(
            count=count,
            limit=self.slots if grows else count,
            gpus_per_run=share,
            on_gpu=share > 0 and self.device is None,
            kind=kind,
            ahead=_MOST_WAITING if grows and growth == "autoscaler" else 0,
        )

    def _chosen(self, nodes: Sequence[Node], growth: Growth) -> tuple[str | None, Sequence[Node]]:
        """Return the resource or label of the requested kind; nodes without it count as empty."""
        if self.kind is None:
            return None, nodes
        present = frozenset[str]().union(*(node.kinds for node in nodes))
        types = {kind for kind in present if kind.startswith(_TYPE)}
        is_type = _TYPE + self.kind in types or (self.kind not in present and "=" not in self.kind)
        kind = _TYPE + self.kind if is_type else self.kind
        waits = growth == "autoscaler" or (growth == "by hand" and self.slots)
        if kind not in present and not waits:
            type_names = ", ".join(sorted(name.removeprefix(_TYPE) for name in types)) or "none"
            raise PlacementError(
                f"--device {self.kind}: no node has this accelerator type, resource or label "
                f"(accelerator types here: {type_names}); if such nodes will join, add --slots N"
            )
        empty = Node(cpus=0, gpus=0)
        return kind, [node if kind in node.kinds else empty for node in nodes]

    def _require_decision(self, room: int, growth: Growth) -> None:
        """Check that the user has decided what to do on a cluster without a GPU."""
        share, slots, sign = self.gpus_per_run, self.slots or 0, sign_of_gpus()
        wait, on_cpus = "add --gpus-per-run 1 to wait for", "--gpus-per-run 0 to train on CPUs"
        refusals = (
            (
                share is None and sign is not None,
                f"{sign} promises a GPU, and Ray found none; fix the GPU driver or the job, or add "
                f"{on_cpus}",
            ),
            (
                share is None and growth == "autoscaler",
                "this cluster has no GPU now, and its autoscaler may start nodes with GPUs; "
                f"{wait} them, or {on_cpus}",
            ),
            (
                share is None and growth == "by hand" and slots > room,
                f"this cluster has no GPU and room for {room} runs on CPUs now, but --slots "
                f"{slots} asks for more; {wait} nodes with GPUs, or {on_cpus}",
            ),
            (
                bool(share) and growth == "by hand" and not slots,
                f"--gpus-per-run {share or 0:g}: no node of this cluster has a GPU, and no "
                "autoscaler starts one; remove --gpus-per-run to train on CPUs, or, if you are "
                "about to join nodes with GPUs, add --slots with the number of runs on them",
            ),
        )
        for holds, message in refusals:
            if holds:
                raise PlacementError(message)

    def _share(self, nodes: Sequence[Node], runs: int) -> float:
        with_gpus = [node for node in nodes if node.gpus]
        share = self.gpus_per_run
        if share is None:
            return 1.0 if with_gpus else 0.0
        if share in {0, 1} or not with_gpus:
            return share
        most = min(round(1 / share), int(runs // sum(node.gpus for node in with_gpus)))

        def room(shares: int) -> int:
            return sum(self._room(node, 1 / shares) for node in with_gpus)

        # The first of the best is the largest share: it leaves no GPU of a node idle.
        return 1 / max(range(1, max(1, most) + 1), key=room)

    def _room(self, node: Node, share: float) -> int:
        by_cpus = int(node.cpus)
        return min(by_cpus, int(node.gpus * round(1 / share))) if share else by_cpus


def require_gpus(study: Study, slots: Slots) -> None:
    """Check that runs use GPUs if the budget of their study limits GPU-hours."""
    budget, path = study.budget, "budget"
    if study.search is not None:
        budget, path = study.search.budget, "search.budget"
    if budget.gpu_hours is not None and not slots.gpus_per_run:
        raise PlacementError(
            f"a budget of GPU-hours needs runs on GPUs, got ({path}.gpu_hours="
            f"{budget.gpu_hours:g}, gpus_per_run={slots.gpus_per_run:g}); "
            f"use {path}.hours, which also limits runs on CPUs."
        )


_MOST_WAITING = 64
"""Largest number of runs that wait for an autoscaler's nodes at the same time, if `--slots` is not
given."""

_TYPE = "accelerator_type:"
"""Beginning of the name of the resource that Ray gives to nodes with a type of GPU, such as H100.
"""

_ROUNDING = 2e-2
"""Tolerance for typed GPU shares: 0.33 means a third."""
