"""Teaching: rules for runs that learn from a teacher; finds runs that train on test images."""

from collections.abc import Iterator
from dataclasses import replace

from mixup_core.config.building import with_values
from mixup_core.images.config import TrainConfig
from mixup_core.images.objectives.objective import Guided
from mixup_core.rules import RuleError


def oracles(config: TrainConfig) -> dict[str, bool]:
    """Return, by dotted path, the values of the fields that let test images into training.

    `data.oracle` is True if the run trains on test images, `objective.oracle` if its teacher does.
    """
    own, objective = {"data.oracle": config.data.oracle}, config.objective
    return own | ({"objective.oracle": objective.oracle} if isinstance(objective, Guided) else {})


def tags(config: TrainConfig) -> tuple[str, ...]:
    """Return the tags of a run: ("oracle",) if it or its teacher trains on test images, else ()."""
    return ("oracle",) if any(oracles(config).values()) else ()


def teacher_arm(config: TrainConfig) -> str | None:
    """Return the name of the arm whose run is the teacher, or None if there is no teacher."""
    return config.objective.teacher if isinstance(config.objective, Guided) else None


def taught(config: TrainConfig, key: str) -> TrainConfig:
    """Return the configuration with `objective.teacher_key` filled in."""
    return with_values(config, {"objective.teacher_key": key})


def apart(teacher: TrainConfig, student: TrainConfig) -> TrainConfig:
    """Return the configuration of the run that teaches: the teacher's, with draws of its own.

    A teacher of a teacher has the draws of its arm again, so that no two runs in a row share them.
    """
    return replace(teacher, as_teacher=not student.as_teacher)


def unfit(config: TrainConfig, teacher: TrainConfig) -> Iterator[RuleError]:
    """Yield the reasons why a run cannot learn from a given teacher, such as another dataset."""
    oracle = oracles(config).get("objective.oracle", False)
    if oracle != ("oracle" in tags(teacher)):
        yield RuleError(
            "objective.oracle must be true if the teacher saw test images, else false",
            {"objective.oracle": oracle, "data.oracle of the teacher": not oracle},
            fields=("objective.oracle",),
        )
    for name in ("name", "digest", "image_size", "views", "pool"):
        own, its = getattr(config.data, name), getattr(teacher.data, name)
        if own != its:
            yield RuleError(
                f"a run and its teacher must have the same data.{name}",
                {f"data.{name}": own, f"data.{name} of the teacher": its},
                fields=(f"data.{name}", "objective.teacher"),
            )
