"""Housekeeping: size of the stored files of each study, and checkpoints that can be deleted."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

from mixup_core.keys import stage_keys
from mixup_core.store.checkpoints import Store
from mixup_core.store.manifests import Stage
from mixup_core.store.sealed_files import known
from sweeps.machine.terminal_text import padded, shortened, width_of
from sweeps.state.results import diverged
from sweeps.study.study import Study

_SPARE = 2
"""Number of newest states that are kept for an unfinished run. If one is damaged, the run can
resume from the other."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Holding:
    """The stored files of one study, such as checkpoints, and which of them can be deleted.

    The files that belong to none of the listed studies are in one more object of this class.
    """

    title: str
    num_runs: int
    num_finished: int
    stages: tuple[Stage, ...]
    prunable: tuple[Stage, ...]
    """Stages whose states can be deleted, because no run of the studies will resume from them."""
    predictions: Mapping[str, int]
    """Size of the predictions in bytes, by stage key. Training needs no predictions; reports
    compute calibration and ensembles from them."""

    def without(self, free: Collection[str]) -> Self:
        """Return a copy of this object in which only the states of given stages can be deleted."""
        kept = tuple(stage for stage in self.prunable if stage.key in free)
        return replace(self, prunable=kept)

    @property
    def num_states(self) -> int:
        return sum(stage.state is not None for stage in self.stages)


def state_bytes(stages: Iterable[Stage]) -> int:
    """Return the total size, in bytes, of the states (checkpoints) of given stages.

    A stage is the stored first epochs of a run. A stage without a state counts 0.
    """
    return sum(stage.state.size for stage in stages if stage.state is not None)


def take_stock(studies: Sequence[Study], store: Store) -> tuple[Holding, ...]:
    """Return a list of the stored files of each study, and a last list of the files of no study.

    A stage (the first epochs of a run) that several studies share is counted for the first of these
    studies.
    """
    stages = {stage.key: stage for stage in store.stages()}
    predictions = dict(store.predictions.sizes(store.predictions.keys()))
    prefixes = {run.key: stage_keys(run.config) for study in studies for run in study.runs()}
    listed = sorted(store.failures.keys() & prefixes.keys())
    failures = dict(known(listed, lambda key: store.failures.read_all([key]).get(key)))
    hopeless = diverged({key: failure for key, failure in failures.items() if failure is not None})
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
    """Delete states (checkpoints) from which no run will resume; return how many bytes were freed.

    No search is pruned, and records are never deleted. The caller must have the lease of every
    study (the right to train it), so that no driver of these studies is running.
    """
    freed = 0
    for holding in studies:
        for stage in holding.prunable:
            store.drop_state(stage.key)
        freed += state_bytes(holding.prunable)
        if with_predictions:
            freed += store.predictions.remove(holding.predictions)
    return freed


def spell_stock(holdings: Sequence[Holding], quarantined: int, columns: int | None = None) -> str:
    """Return the sizes of stored files as a text table for the console, one row per study."""
    cells = {
        "finished": [f"{h.num_finished}/{h.num_runs}" if h.num_runs else "" for h in holdings],
        "stages": [str(len(h.stages)) for h in holdings],
        "states": [str(h.num_states) for h in holdings],
        "MB": [_megabytes(h.stages) for h in holdings],
        "prunable MB": [_megabytes(h.prunable) for h in holdings],
        "predictions MB": [f"{sum(h.predictions.values()) / 1e6:,.1f}" for h in holdings],
    }
    titles = ["study", *(holding.title for holding in holdings)]
    most = max(map(width_of, titles))
    widths = {name: max(len(name), *map(len, column)) for name, column in cells.items()}
    if columns is not None:
        for left_out in ("states", "stages"):
            if columns - sum(widths.values()) - 2 * len(widths) <= min(most, 12):
                del widths[left_out]
        most = min(most, max(12, columns - 1 - sum(widths.values()) - 2 * len(widths)))
    rows = zip(*([name, *cells[name]] for name in widths), strict=True)
    lines = [
        "  ".join((padded(shortened(title, most), most), *map(str.rjust, row, widths.values())))
        for title, row in zip(titles, rows, strict=True)
    ]
    if quarantined:
        lines.append(f"{quarantined} damaged files are in quarantine/")
    return "\n".join(lines)


def _needed(keys: Sequence[str], stages: Mapping[str, Stage], *, has_diverged: bool) -> list[str]:
    """Return the keys of a run's stages whose states must be kept."""
    if keys[-1] in stages:
        return [keys[-1]]
    if has_diverged:
        return []
    resumable = [key for key in keys if key in stages and stages[key].state is not None]
    return resumable[-_SPARE:]


def _megabytes(stages: Iterable[Stage]) -> str:
    return f"{state_bytes(stages) / 1e6:,.1f}"
