"""Stock: size of the stored files of each study, and checkpoints that can be deleted."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from mixup_core.keys import stage_keys
from mixup_core.store.checkpoints import Store
from mixup_core.store.manifests import Stage
from mixup_core.store.sealed_files import known
from sweeps.state.ledger import reference_of
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
    num_runs: int = 0
    num_finished: int = 0
    stages: tuple[Stage, ...]
    prunable: tuple[Stage, ...] = ()
    """Stages whose states can be deleted, because no run of the studies will resume from them."""
    predictions: Mapping[str, int]
    """Size of the predictions in bytes, by stage key. Training needs no predictions; reports
    compute calibration and ensembles from them."""

    @property
    def num_states(self) -> int:
        return sum(stage.state is not None for stage in self.stages)


def state_bytes(stages: Iterable[Stage]) -> int:
    """Return the total size, in bytes, of the states (checkpoints) of given stages."""
    return sum(stage.state.size for stage in stages if stage.state is not None)


def take_stock(studies: Sequence[Study], store: Store) -> tuple[Holding, ...]:
    """Return the stored files of each study, and last those that belong to no study.

    A stage (the first epochs of a run) that several studies share is counted for the first of them.
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
    names = Counter(study.name for study in studies)
    holdings = []
    for study in studies:
        runs = [prefixes[run.key] for run in study.runs()]
        held = [stages.pop(key) for keys in runs for key in keys if key in stages]
        holdings.append(
            Holding(
                title=study.name
                if names[study.name] == 1
                else reference_of(study.name, study.settings),
                num_runs=len(runs),
                num_finished=sum(keys[-1] in stored for keys in runs),
                stages=tuple(held),
                prunable=tuple(s for s in held if s.state is not None and s.key not in needed),
                predictions={
                    keys[-1]: predictions.pop(keys[-1]) for keys in runs if keys[-1] in predictions
                },
            )
        )
    rest = tuple(stages.values())
    return (*holdings, Holding(title="(others)", stages=rest, predictions=predictions))


def prune(
    studies: Iterable[Holding],
    store: Store,
    free: Collection[str],
    *,
    with_predictions: bool = False,
) -> int:
    """Delete states (checkpoints) from which no run will resume; return how many bytes were freed.

    Records are never deleted. The caller holds the lease of every study, so that no driver of
    these studies is running; `free` has the stages that no other driver needs.
    """
    freed = 0
    for holding in studies:
        for stage in holding.prunable:
            if stage.key in free:
                store.drop_state(stage.key)
                freed += state_bytes([stage])
        if with_predictions:
            freed += store.predictions.remove(holding.predictions)
    return freed


def _needed(keys: Sequence[str], stages: Mapping[str, Stage], *, has_diverged: bool) -> list[str]:
    """Return the keys of a run's stages whose states must be kept."""
    if keys[-1] in stages:
        return [keys[-1]]
    if has_diverged:
        return []
    resumable = [key for key in keys if key in stages and stages[key].state is not None]
    return resumable[-_SPARE:]
