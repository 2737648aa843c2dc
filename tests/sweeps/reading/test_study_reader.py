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


def test_invalid_values_of_another_problem_are_refused_with_line_and_rule(tmp_path: Path) -> None:
    text = TOY.replace("epochs: 4", "\n  epochs: 0,\n  drif: 1,\n  seed: 3,\n  teacher_key: a")
    assert refusals(tmp_path, text) == [
        "4: base.epochs: `epochs >= 1` must hold, got (epochs=0).",
        "5: base.drif: unknown key 'drif' (did you mean drift?)",
        "6: base.seed: 'seed' give `seeds`",
        "7: base.teacher_key: 'teacher_key' it is filled in",
    ]


def test_an_unknown_problem_is_refused_with_a_list_of_known_problems(tmp_path: Path) -> None:
    (line,) = refusals(tmp_path, SMALL + "problem: image\n")
    assert line.startswith("4: problem: got text 'image' (did you mean images?); expected images, ")
    assert line.endswith("; if a plugin defines this problem, add --plugin FILE")


def test_a_missing_key_of_base_does_not_hide_other_rules(tmp_path: Path) -> None:
    text = SMALL.replace("epochs: 4, batch_size: 8", "optimizer: {lr: 0}")
    assert refusals(tmp_path, text) == [
        "2: base: missing key 'epochs'",
        "2: base: missing key 'batch_size'",
        "2: base.optimizer.lr: `0 < lr <= 1000` must hold, got (lr=0.0).",
    ]


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


def test_equal_arms_with_the_same_teacher_are_refused_as_duplicates(tmp_path: Path) -> None:
    same = f"{TOY}arms: {{a: {{}}, b: {{teacher: a}}, c: {{teacher: a}}}}\n"
    (line,) = refusals(tmp_path, same)
    assert line == "5: arms.c.teacher: arms 'b' and 'c' are the same run"


def test_more_epochs_of_points_than_can_be_planned_are_refused(tmp_path: Path) -> None:
    base = "{data: {val_size: 100}, model: {name: mlp}, epochs: 10000, batch_size: 8}"
    text = ARMS.replace("{model: {name: mlp}, epochs: 4, batch_size: 8}", base)
    space = "{mix.law: {beta: {uniform: [1, 2]}}}"
    search = f"search: {{space: {space}, points: 1000, objective: val/error}}\n"
    (line,) = refusals(tmp_path, text + search)
    said = "the study has 20,040,000 epochs in all; at most 2,000,000 are allowed"
    assert line == f"7: search: {said}"


def test_a_budget_does_not_change_the_settings_of_a_study(tmp_path: Path) -> None:
    plain = read(tmp_path, TOY)
    study = read(tmp_path, TOY + "budget: {runs: 3, hours: 1.5}\n")
    assert study.budget.limits == {"hours": 1.5, "runs": 3}
    assert (plain.budget.limits, plain.settings) == ({}, study.settings)
    assert refusals(tmp_path, TOY + "budget: {runs: 0}\n") == [
        "5: budget.runs: `runs >= 1` must hold, got (runs=0)."
    ]


def test_a_read_out_of_more_evaluations_than_a_run_has_is_refused(tmp_path: Path) -> None:
    said = "mean of the last 5 evaluations needs 5 evaluations, and arm"
    assert refusals(tmp_path, TOY + "readout: {mean_of_last: 5}\n") == [
        f"5: readout: {said} base has 4"
    ]
    claim = "{metric: val/error, less: [uniform, erm], readout: {mean_of_last: 5}}"
    claims = f"claims:\n  - {{says: a, source: b, that: {claim}}}\n"
    text = ARMS.replace("epochs: 4", "data: {val_size: 100}, epochs: 12, eval_every: 3") + claims
    assert refusals(tmp_path, text) == [f"8: claims[0]: {said} erm has 4"]
    assert read(tmp_path, text.replace("eval_every: 3", "eval_every: 2")).claims


@pytest.mark.parametrize(
    "arms",
    [
        "{a: {}, b: {mix.lawn: erm}}",
        "{a: {mix.lawn: erm}, b: {}}",
        "{a: {}, b: {mix: {lawn: erm}}, c: {optimizer.rate: 1}}",
    ],
)
def test_an_arm_with_a_refused_setting_is_not_reported_as_a_duplicate(
    tmp_path: Path, arms: str
) -> None:
    problem = "study: s\nbase: {epochs: 1, batch_size: 5}\nseeds: 1\n"
    lines = refusals(tmp_path, f"{problem}arms: {arms}\n")
    assert len(lines) == arms.count("law") + arms.count("rate")
    assert not any("same run" in line for line in lines)
