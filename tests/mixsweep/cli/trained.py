"""A home as a launch leaves it, without training."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from mixup_core.records import EpochRecord
from mixup_core.store.checkpoints import Store
from mixup_core.store.manifests import EpochFacts
from sweeps.reading.study_file import load_study
from sweeps.state.ledger import enter
from sweeps.study.study import Study
from tests.filled import put


def train(
    home: Path,
    reference: str = "digits",
    *overrides: str,
    but: tuple[str, int] | None = None,
    environment: Mapping[str, str] = MappingProxyType({}),
    shift: float = 0.0,
) -> Study:
    """Store every run of a study but the one `but`; errors differ between arms, seeds and epochs.

    `shift` times the seed is added to the errors of all arms but the first.
    """
    study, store = load_study(reference, overrides), Store(str(home / "store"))
    enter(study, store, f"mixsweep run {reference}")
    for run in study.runs():
        if (run.arm, run.seed) == but:
            continue
        place, epochs = list(study.arms).index(run.arm), range(run.config.epochs)
        shifted = shift * run.seed if place else 0.0
        errors = [error_of(place, run.seed, epoch) + shifted for epoch in epochs]
        records = [EpochRecord(epoch=e, metrics={"test/error": errors[e]}) for e in epochs]
        facts = [EpochFacts(seconds=1.0 + epoch, stored_at_ms=epoch) for epoch in epochs]
        put(store, run, records, facts=facts, environment=environment)
    return study


def error_of(place: int, seed: int, epoch: int) -> float:
    """Return the error after an epoch of the arm with a given position in its study."""
    return (0.1 + 0.02 * place**2 + 0.01 * place * seed) / (seed + epoch + 1)
