"""Teaching: rules of distillation for images, and detection of runs that used test images."""

from collections.abc import Iterator

from mixup_core.images.config import TrainConfig
from mixup_core.images.objectives.guided import Guided
from mixup_core.rules import RuleError
from mixup_core.tree.building import with_values


def oracles(config: TrainConfig) -> dict[str, bool]:
    """Return, by path of a setting, True if it makes the run or its teacher use test images."""
    own, objective = {"data.oracle": config.data.oracle}, config.objective
    return own | ({"objective.oracle": objective.oracle} if isinstance(objective, Guided) else {})


def tags(config: TrainConfig) -> tuple[str, ...]:
    """Return `oracle` if the run uses test images, itself or through its teacher; else nothing."""
    return ("oracle",) if any(oracles(config).values()) else ()


def teacher_arm(config: TrainConfig) -> str | None:
    """Return the name of the arm that a configuration has as teacher, or None."""
    return config.objective.teacher if isinstance(config.objective, Guided) else None


def taught(config: TrainConfig, key: str) -> TrainConfig:
    """Return the configuration with the final stage key of its teacher filled in."""
    return with_values(config, {"objective.teacher_key": key})


def unfit(config: TrainConfig, teacher: TrainConfig) -> Iterator[RuleError]:
    """Yield the reasons why a run cannot learn from a given teacher."""
    oracle = oracles(config).get("objective.oracle", False)
    if oracle != ("oracle" in tags(teacher)):
        yield RuleError(
            "objective.oracle must say if the teacher saw test images",
            {"objective.oracle": oracle, "data.oracle of the teacher": not oracle},
            fields=("objective.oracle",),
        )
    for name in ("name", "digest", "image_size", "views", "pool"):
        own, its = getattr(config.data, name), getattr(teacher.data, name)
        if own != its:
            yield RuleError(
                f"the teacher must have the same data.{name}",
                {f"data.{name}": own, f"data.{name} of the teacher": its},
                fields=(f"data.{name}", "objective.teacher"),
            )
