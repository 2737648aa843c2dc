"""Housekeeping: how much each study stores, and how much of it can be deleted."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

from mixup_core.keys import stage_keys
from mixup_core.store.checkpoints import Store
from mixup_core.store.manifests import Stage
from sweeps.state.failures import diverged
from sweeps.study.study import Study

_SPARE = 2
"""Number of newest states kept for an unfinished run: if one is damaged, the run resumes from the
other."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Holding:
    """The stored files of one study, or the files that belong to none of the given studies."""

    title: str
    num_runs: int
    num_finished: int
    stages: tuple[Stage, ...]
    prunable: tuple[Stage, ...]
    """Stages whose state no run of the given studies will resume from."""
    predictions: Mapping[str, int]
    """Size of the predictions in bytes, by stage key. No run needs them; reports compute
    calibration and ensembles from them."""

    def without(self, free: Collection[str]) -> Self:
        """Return a copy in which only the prunable stages with a key in `free` remain prunable."""
        kept = tuple(stage for stage in self.prunable if stage.key in free)
        return replace(self, prunable=kept)

    @property
    def num_states(self) -> int:
        """Number of stages whose state is stored."""
        return sum(stage.state is not None for stage in self.stages)


def state_bytes(stages: Iterable[Stage]) -> int:
    """Return the total size of the states of some stages, in bytes."""
    return sum(stage.state.size for stage in stages if stage.state is not None)


def take_stock(studies: Sequence[Study], store: Store) -> tuple[Holding, ...]:
    """Return the stored files of each study, then those that belong to no study.

    A stage that several studies share is counted for the first of them.

    Args:
        studies: Studies with distinct names.
        store: The store of their runs.
    """
    stages = {stage.key: stage for stage in store.stages()}
    predictions = dict(store.predictions.sizes(store.predictions.keys()))
    hopeless = diverged(store.failures.read_all())
    prefixes = {run.key: stage_keys(run.config) for study in studies for run in study.runs()}
    needed = {
        key
        for run_key, keys in prefixes.items()
        for key in _needed(keys, stages, has_diverged=run_key in hopeless)
    }
    stored = set(stages)
    holdings = []
    for study in studies:
        runs = [prefixes[run.key] for run in study.runs()]
        own = [stages.pop(key) for keys in runs for key in keys if key in stages]
        holdings.append(
            Holding(
                title=study.name,
                num_runs=len(runs),
                num_finished=sum(keys[-1] in stored for keys in runs),
                stages=tuple(own),
                prunable=tuple(s for s in own if s.state is not None and s.key not in needed),
                predictions={
                    keys[-1]: predictions.pop(keys[-1]) for keys in runs if keys[-1] in predictions
                },
            )
        )
    rest = Holding(
        title="(others)",
        num_runs=0,
        num_finished=0,
        stages=tuple(stages.values()),
        prunable=(),
        predictions=predictions,
    )
    return (*holdings, rest)


def prune(studies: Iterable[Holding], store: Store, *, with_predictions: bool = False) -> int:
    """Delete the prunable states, and on request the predictions; return the bytes freed.

    Records are never deleted. No driver of one of the studies may be running: hold their leases.

    Args:
        studies: What the store has of each study, without the entry of files of other studies.
        store: The store.
        with_predictions: If True, delete the predictions too.
    """
    freed = 0
    for holding in studies:
        for stage in holding.prunable:
            store.drop_state(stage.key)
        freed += state_bytes(holding.prunable)
        if with_predictions:
            freed += store.predictions.remove(holding.predictions)
    return freed


def spell_stock(holdings: Sequence[Holding], quarantined: int) -> str:
    """Return the stored files as a text table.

    Args:
        holdings: One row each.
        quarantined: Number of damaged files in quarantine.
    """
    width = max(len(title) for title in ("study", *(holding.title for holding in holdings)))
    lines = [
        f"{'study':<{width}}  finished  stages  states          MB  prunable MB  predictions MB"
    ]
    for holding in holdings:
        runs = f"{holding.num_finished}/{holding.num_runs}" if holding.num_runs else ""
        lines.append(
            f"{holding.title:<{width}}  {runs:>8}  {len(holding.stages):>6}  "
            f"{holding.num_states:>6}  {_megabytes(holding.stages):>10}  "
            f"{_megabytes(holding.prunable):>11}  "
            f"{sum(holding.predictions.values()) / 1e6:>14,.1f}"
        )
    if quarantined:
        lines.append(f"{quarantined} damaged files are in quarantine/")
    return "\n".join(lines)


def _needed(keys: Sequence[str], stages: Mapping[str, Stage], *, has_diverged: bool) -> list[str]:
    """Return the stages of a run whose state is still needed: its last, or those to resume from."""
    if keys[-1] in stages:
        return [keys[-1]]
    if has_diverged:
        return []
    resumable = [key for key in keys if key in stages and stages[key].state is not None]
    return resumable[-_SPARE:]


def _megabytes(stages: Iterable[Stage]) -> str:
    return f"{state_bytes(stages) / 1e6:,.1f}"
