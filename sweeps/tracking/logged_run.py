"""Logged run: the name, tags and params that a run should have in MLflow, and those it has."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, get_args

from sweeps.state.results import Outcome
from sweeps.tracking.progress import Row

if TYPE_CHECKING:
    from mlflow.entities import Run as MlflowRun

Level = Literal["sweep", "config", "seed"]

Status = Literal["RUNNING", "FINISHED", "FAILED", "KILLED"]

NAME_TAG = "mlflow.runName"
"""Tag with the name that MLflow shows for a run."""

PARENT_TAG = "mlflow.parentRunId"

NOTE_TAG = "mlflow.note.content"
"""Tag with the Markdown text that MLflow shows on the page of a run or an experiment."""

MODEL_TAG = "model"
"""Tag with the address of a run's trained network, for `mlflow.pytorch.load_model`."""

STEP_TAG = "step"
"""Tag of a run of level `seed` that says that its steps count trained epochs. In older runs, which
lack this tag, a step is the 0-based epoch."""

OWNER_TAG = "mixsweep.store"
"""Tag with the owner of a run, because several stores can write to one MLflow server: the random id
of the store, or `HOME` if the database belongs to a single home."""

HOME = "home"

MAX_TAG = 8000
"""Largest number of characters that MLflow accepts in a tag of a run."""

NAMED_BY: Mapping[str, tuple[str, ...]] = {
    "sweep": ("study", "config_id"),
    "config": ("arm", "config_id"),
    "seed": ("run_key",),
}
"""Tags that together name a run within an experiment, by level."""

OWN_TAGS = frozenset({OWNER_TAG, "run_key", "config_id"})
"""Tags that only runs of mixsweep have; each of its runs of level `seed` has one of them."""

_NUMBER = re.compile(r"[0-9]{1,19}")

Identity = tuple[str, tuple[str, ...]]
"""Level of a run (`sweep`, `config` or `seed`), and its name within the level."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Wanted:
    """Name, tags, params and start time that a run in MLflow should have; metrics are separate."""

    level: Level
    name: tuple[str, ...]
    """Unique name within the level: study and configuration, arm and configuration, or run key."""
    tags: Mapping[str, str]
    """Tags that are updated whenever they differ."""
    first_tags: Mapping[str, str]
    """Tags that are set only when the run is created."""
    params: Mapping[str, str] = field(default_factory=dict)
    """Params to add if they are missing; MLflow cannot change existing ones."""
    started_at_ms: int | None = None
    """Start of the run, Unix time in ms; None means now."""

    @property
    def identity(self) -> Identity:
        """Level of the run (`sweep`: study, `config`: arm, `seed`: one seed), and its name."""
        return self.level, self.name

    @property
    def created_tags(self) -> Mapping[str, str]:
        """All tags with which a run is created in MLflow, also those that are never updated."""
        steps = {STEP_TAG: "epochs trained"} if self.level == "seed" else {}
        return {**self.all_tags, **self.first_tags, **steps}

    @property
    def all_tags(self) -> Mapping[str, str]:
        """The tags that a run in MLflow should have, including its level and its name."""
        names = dict(zip(NAMED_BY[self.level], self.name, strict=True))
        return {**self.tags, **names, "level": self.level}


@dataclass(kw_only=True, slots=True)
class LoggedRun:
    """Tags, params and values that one run has in MLflow; cached, so only missing ones are sent."""

    run_id: str
    status: str
    tags: dict[str, str]
    params: dict[str, str]
    metric_names: tuple[str, ...]
    data_digests: tuple[str, ...]
    """Digests of the datasets that are logged as inputs of the run."""
    rows: list[Row] | None
    """Logged rows; None before they are read (`Experiment.rows`)."""

    @property
    def level(self) -> str:
        """Level of the run in MLflow (`sweep`: study, `config`: arm, `seed`: one seed).

        Empty if another program created the run.
        """
        return self.tags.get("level", "")

    @property
    def identity(self) -> Identity:
        """Level of the run (study, arm or seed) and its name, from tags; empty for missing tags.

        Runs of older versions of mixsweep lack the tag `config_id`.
        """
        return self.level, tuple(self.tags.get(tag, "") for tag in NAMED_BY[self.level])

    def is_of(self, owner: str | None) -> bool:
        """Return True if the given store wrote this run to MLflow.

        A tag of the run names the store that wrote it, its owner. Runs without this tag were
        written before it existed, or by another program: True for them if their other tags are
        those of mixsweep.

        Args:
            owner: Id of the store, or `HOME` if MLflow's database belongs to a single home; None
                for any store.
        """
        if OWNER_TAG in self.tags:
            return owner in {None, self.tags[OWNER_TAG]}
        return not OWN_TAGS.isdisjoint(self.tags)

    @property
    def is_whole(self) -> bool:
        """True if a run in MLflow has all tags that describe it; otherwise it is written again."""
        match self.level:
            case "seed":
                numbers = [self.tags.get(name, "") for name in ("seed", "position")]
                is_known = self.tags.get("outcome") in get_args(Outcome)
                names = self.tags.get("run_key") and self.tags.get("arm")
                return bool(names) and is_known and all(map(_NUMBER.fullmatch, numbers))
            case "config":
                return bool(self.tags.get("arm"))
            case "sweep":
                return bool(self.tags.get("study"))
            case _:
                return False

    @property
    def first_step(self) -> int:
        """The step that a run's first epoch has in MLflow: 1, or 0 in runs of older versions."""
        return 0 if self.level == "seed" and STEP_TAG not in self.tags else 1


def logged_run(run: "MlflowRun") -> LoggedRun:
    """Return status, tags, params and metric names of a run, from MLflow's answer.

    Metric values are read later.
    """
    metric_names = tuple(run.data.metrics)
    return LoggedRun(
        run_id=run.info.run_id,
        status=run.info.status,
        tags=dict(run.data.tags),
        params=dict(run.data.params),
        metric_names=metric_names,
        data_digests=tuple(data.dataset.digest for data in run.inputs.dataset_inputs),
        rows=None if metric_names else [],
    )


def fitting(words: Iterable[str]) -> str:
    """Return as many words as fit in a tag of MLflow, separated by spaces."""
    text = " ".join(words)
    return text if len(text) <= MAX_TAG else text[:MAX_TAG].rpartition(" ")[0]
