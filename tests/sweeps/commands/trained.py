"""A home as a launch leaves it, without training."""

from pathlib import Path

from mixup_core.keys import stage_keys
from mixup_core.records import EpochRecord
from mixup_core.store.checkpoints import Store
from mixup_core.store.manifests import EpochFacts
from sweeps.ledger import enter
from sweeps.reading.study_file import load_study
from sweeps.study import Study


def train(
    home: Path, reference: str = "digits", *overrides: str, but: tuple[str, int] | None = None
) -> Study:
    """Store every run of a study, less one; errors differ between arms, seeds and epochs."""
    study, store = load_study(reference, overrides), Store(str(home / "store"))
    enter(study, store, f"mixsweep run {reference}")
    for run in study.runs():
        if (run.arm, run.seed) == but:
            continue
        place = list(study.arms).index(run.arm)
        store.write(
            stage_keys(run.config)[-1],
            records=[
                EpochRecord(epoch=e, metrics={"test/error": error_of(place, run.seed, e)})
                for e in range(run.config.epochs)
            ],
            facts=[EpochFacts(seconds=1.0 + e, stored_at_ms=e) for e in range(run.config.epochs)],
            environment={},
            state=None,
        )
    return study


def error_of(place: int, seed: int, epoch: int) -> float:
    """Return the error after an epoch of the arm at a place of its study."""
    return (0.1 + 0.02 * place**2 + 0.01 * place * seed) / (seed + epoch + 1)
