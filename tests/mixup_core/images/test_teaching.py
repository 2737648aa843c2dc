"""Teaching: how a teacher enters keys, who may learn from whom, and who has seen test images."""

import dataclasses

import pytest

from mixup_core.config.building import with_values
from mixup_core.images.config import TrainConfig
from mixup_core.images.data.datasets import Splits
from mixup_core.images.feasibility import tags, taught, teacher_arm, unfit
from mixup_core.images.problem import hidden
from mixup_core.keys import run_key, stage_keys
from mixup_core.problem import Teacher
from mixup_core.rules import RuleError
from tests.mixup_core.images.taught_runs import NAMED, trained


def test_keys_of_a_guided_run_depend_on_the_stage_of_its_teacher_and_not_its_name(
    mixed: TrainConfig,
) -> None:
    guided = with_values(mixed, {"objective": {"filter": {"teacher": "mixup"}}})
    for key in (run_key, stage_keys):
        with pytest.raises(
            RuleError, match=r"objective\.teacher needs objective\.teacher_key"
        ) as caught:
            key(guided)  # type: ignore[operator]
        assert caught.value.fields == ("objective.teacher", "objective.teacher_key")
    known = taught(guided, "a" * 32)
    renamed = with_values(known, {"objective.teacher": "other"})
    retaught = taught(guided, "b" * 32)
    assert (teacher_arm(known), known.objective.teacher_key) == ("mixup", "a" * 32)  # type: ignore[union-attr]
    assert (run_key(renamed), stage_keys(renamed)) == (run_key(known), stage_keys(known))
    assert run_key(retaught) != run_key(known)
    assert stage_keys(retaught)[1:] != stage_keys(known)[1:]
    assert stage_keys(retaught)[0] == stage_keys(known)[0], "the warm-up knows no teacher"
    assert teacher_arm(mixed) is None


def test_a_missing_teacher_or_one_with_other_views_is_refused(
    mixed: TrainConfig, splits: Splits, teacher: Teacher
) -> None:
    guided = with_values(mixed, {"objective": NAMED, "data.views": "single"})
    with pytest.raises(RuleError, match=r"its teacher must have the same data\.views"):
        trained(guided, splits, teacher)
    with pytest.raises(ValueError, match="the objective `filter` needs a teacher"):
        trained(with_values(mixed, {"objective": NAMED}), splits)


def test_runs_that_learn_from_test_images_are_marked_and_never_selected(
    mixed: TrainConfig, splits: Splits
) -> None:
    oracle = with_values(mixed, {"data.oracle": True, "data.val_size": 1})
    guided = with_values(mixed, {"objective": NAMED, "data.val_size": 1})
    declared = with_values(guided, {"objective.oracle": True})
    assert [tags(config) for config in (mixed, guided, oracle, declared)] == [
        (), (), ("oracle",), ("oracle",),
    ]  # fmt: skip
    for config in (oracle, declared):
        with pytest.raises(RuleError, match="a search must not train on test images"):
            hidden(config)
    with pytest.raises(RuleError, match="an oracle needs test images"):
        with_values(oracle, {"data.test": False})

    _, state = trained(oracle, splits)
    _, plain = trained(with_values(oracle, {"data.oracle": False}), splits)
    assert state != plain
    leaking = Teacher(config=oracle, state=state)
    trained(declared, splits, leaking)
    with pytest.raises(RuleError, match=r"objective\.oracle must be true if the teacher saw"):
        trained(guided, splits, leaking)
    honest = Teacher(config=dataclasses.replace(mixed), state=plain)
    with pytest.raises(RuleError, match=r"objective\.oracle must be true if the teacher saw"):
        trained(declared, splits, honest)


def test_every_reason_against_a_teacher_is_returned(mixed: TrainConfig) -> None:
    guided = with_values(mixed, {"objective": NAMED})
    assert list(unfit(guided, mixed)) == []
    other = with_values(mixed, {"data.name": "mnist", "data.image_size": 16, "data.pool": 2,
                                "data.views": "single", "data.oracle": True})  # fmt: skip
    assert [error.fields[0] for error in unfit(guided, other)] == [
        "objective.oracle", "data.name", "data.image_size", "data.views", "data.pool",
    ]  # fmt: skip
