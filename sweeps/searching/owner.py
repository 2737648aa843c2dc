"""Owner: the study and store that a search belongs to, if several homes share an Optuna storage."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from mixup_core.config.building import with_values
from mixup_core.keys import stage_keys
from mixup_core.problem import with_named_teacher
from mixup_core.store.checkpoints import Store, identity_of, known_identity
from sweeps.study.study import Study


@dataclass(frozen=True, kw_only=True, slots=True)
class Owner:
    """A study and the store of its results; identifies a search in a shared Optuna storage."""

    study: Study
    store: Store
    identity: str
    """Random id of the store, which is written in the store."""

    @classmethod
    def of(cls, study: Study, store: Store, *, is_writing: bool) -> Self:
        """Return the owner of a study's search: the study, its store, and the store's random id."""
        known = identity_of(store) if is_writing else known_identity(store)
        return cls(study=study, store=store, identity=known or "nobody")

    def has_results(self, points: Iterable[Mapping[str, Any]]) -> bool:
        """Return True if the store has finished runs of all given points at every seed.

        False if no points are given.
        """
        search, points = self.study.search, tuple(points)
        if search is None or not points:
            return False
        stored = self.store.keys()
        return all(
            stage_keys(with_named_teacher(with_values(config, {"seed": seed})))[-1] in stored
            for config in map(search.config_of, points)
            for seed in self.study.seeds
        )
