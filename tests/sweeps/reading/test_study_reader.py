from pathlib import Path

import pytest

from mixup_core.config.written_forms import flatten
from mixup_core.laws import Beta, Midpoint
from tests.sweeps.reading.study_files import ARMS, SMALL, read, refusals

TOY = "study: x\nproblem: toy\nbase: {epochs: 4}\nseeds: 2\n"

pytestmark = pytest.mark.usefixtures("toy_problem")


def test_a_study_file_sets_the_problem_of_its_runs(tmp_path: Path) -> None:
    study = read(tmp_path, TOY + "arms: {still: {}, moving: {drift: 1}}\n")
    assert study.problem.name == "toy"
    assert [flatten(config)["drift"] for config in study.arms.values()] == [0.0, 1.0]
    assert study.baseline == "still"
    assert "problem: toy" in study.source
    assert read(tmp_path, study.source) == study
    assert read(tmp_path, SMALL).problem.name == "images"


def test_a_choice_can_be_written_flat_at_every_level(tmp_path: Path) -> None:
    flat = SMALL.replace("epochs: 4", "mix: {law: beta, law.alpha: 2}, epochs: 4")
    arms = "arms: {a: {}, b: {mix.law.alpha: 3}, c: {mix.law: beta, mix.law.alpha: 4}}\n"
    study = read(tmp_path, flat + arms)
    laws = [config.mix.law for config in study.arms.values()]  # type: ignore[attr-defined]
    assert laws == [Beta(alpha=2.0), Beta(alpha=3.0), Beta(alpha=4.0)]
    (line,) = refusals(tmp_path, SMALL + "arms: {a: {mix.law: beta}}\n")
    assert line.startswith("4: arms.a.mix.law: mix.law.alpha must be given")


def test_an_arm_that_replaces_a_whole_choice_drops_its_fields_from_base(tmp_path: Path) -> None:
    flat = SMALL.replace("epochs: 4", "mix: {law: beta, law.alpha: 2}, epochs: 4")
    study = read(tmp_path, flat + "arms: {a: {mix.law: midpoint}, b: {mix.law: {beta: 5}}}\n")
    laws = [config.mix.law for config in study.arms.values()]  # type: ignore[attr-defined]
    assert laws == [Midpoint(), Beta(alpha=5.0)]


@pytest.mark.parametrize(
    ("arms", "problem"),
    [
        ("{a: {}, b: {teacher: c}}", "the teacher of b must be an arm of the study, got 'c'"),
        ("{a: {}, b: {teacher: b}}", "b learns from itself: b <- b"),
        ("{a: {teacher: b}, b: {teacher: a}}", "a learns from itself: a <- b <- a"),
    ],
)
def test_a_teacher_must_be_another_arm_without_a_cycle(
    tmp_path: Path, arms: str, problem: str
) -> None:
    lines = refusals(tmp_path, f"{TOY}arms: {arms}\n")
    assert any(line.startswith("5: arms.") and problem in line for line in lines)


def test_more_epochs_of_points_than_can_be_planned_are_refused(tmp_path: Path) -> None:
    base = "{data: {val_size: 100}, model: {name: mlp}, epochs: 10000, batch_size: 8}"
    text = ARMS.replace("{model: {name: mlp}, epochs: 4, batch_size: 8}", base)
    space = "{mix.law: {beta: {uniform: [1, 2]}}}"
    search = f"search: {{space: {space}, points: 1000, objective: val/error}}\n"
    (line,) = refusals(tmp_path, text + search)
    said = "the study has 20,040,000 epochs in all; at most 2,000,000 are allowed"
    assert line == f"7: search: {said}"
