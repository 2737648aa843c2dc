from dataclasses import replace

import pytest

from mixup_core.config.building import with_values
from mixup_core.problem import problem_named
from reports.numbers.comparison import compare
from reports.numbers.families import Family
from reports.pages.screen import screen
from reports.tables.captions import spell_family, spell_power, spell_settings
from reports.tables.table import tabulate
from sweeps.state.results import RunResult
from sweeps.study.study import Study
from tests.reports.synthetic import ended, finish, make_study


def test_a_family_without_comparisons_states_no_adjustment() -> None:
    study = make_study(seeds=(1,))
    caption = tabulate(study, tuple(map(finish, study.runs()))).caption
    assert "0 comparisons" not in caption
    family = Family(size=0, members={})
    assert spell_family(family) == ("No test is possible, because fewer than two seeds are paired.")


def test_words_common_to_several_settings_are_written_once() -> None:
    config = problem_named("two-layer").config()
    values = [*({"data.classes": k} for k in (4, 6, 16)), {"epochs": 66}]
    arms = {str(place): with_values(config, value) for place, value in enumerate(values)}
    two_layer = replace(make_study(), arms=arms, baseline="0")
    assert spell_settings(two_layer, "features/both") == (
        "k = 4/6/16, 400/600/1600 fresh points, flow time 1e+07/3.16e+07"
    )
    assert spell_settings(make_study(), "test/error").endswith(", 10 000 test images")


def test_the_caption_explains_data_intervals_tests_and_power(
    study: Study, results: tuple[RunResult, ...]
) -> None:
    caption = tabulate(study, results, made_with="cpu, torch 2").caption
    for part in (
        "Fashion-MNIST",
        "10 000 test images",
        "95 % t interval over seeds 0-4",
        "All arms and the read-out were fixed in advance (selection rule: none).",
        "Read-out of each run: last epoch.",
        "Intervals and p values are adjusted for 2 comparisons (Bonferroni)",
        "The smallest detectable difference (power 0.8) is 0.81 points (midpoint) to 1.62 points "
        "(uniform), if the true standard deviation of the differences equals the observed one.",
        "d: standardised difference",
        "not the variation over samples of the data (standard deviation 0.42 points) or over kinds "
        "of processors.",
        "cpu, torch 2",
    ):
        assert part in caption


@pytest.mark.parametrize(
    ("errors", "is_told"), [((0.9, 0.899), True), ((0.9, 0.85), False), ((0.1, 0.9), False)]
)
def test_a_study_whose_arms_all_guess_has_a_warning_with_a_remedy(
    errors: tuple[float, float], is_told: bool
) -> None:
    study = make_study(("erm", "uniform"))
    of_arm = dict(zip(study.arms, errors, strict=True))
    table = tabulate(study, [finish(run, of_arm[run.arm]) for run in study.runs()])
    said = (
        "WARNING, no arm is better than guessing a class (90.00 % test error): train for more "
        "epochs, or raise optimizer.lr."
    )
    assert (said in table.caption) is is_told
    assert (said in " ".join(screen(study, table, ()).split())) is is_told


def test_seeds_with_a_gap_are_listed_individually() -> None:
    study = make_study(seeds=(0, 1, 5))
    assert "over seeds 0-1, 5." in tabulate(study, ended(study, {})).caption


def test_the_caption_of_a_study_without_test_images_names_the_measured_images() -> None:
    study = make_study()
    arms = {
        arm: replace(config, data=replace(config.data, test=False, val_size=5000))
        for arm, config in study.arms.items()
    }
    caption = tabulate(replace(study, arms=arms), []).caption
    assert "5 000 validation images" in caption
    assert "No test is possible, because no arm shares two seeds with erm." in caption


def test_a_detectable_difference_beyond_the_metric_range_is_reported_as_such(study: Study) -> None:
    metric = study.problem.metric("test/error")
    few = compare({0: 0.1, 1: 0.9}, {0: 0.5, 1: 0.2})
    (said,) = spell_power({"uniform": few}, 1, metric)
    assert "is more than 100.00 points (the largest possible difference), if the true" in said
    nats = study.problem.metric("test/nll")
    (said,) = spell_power({"uniform": few}, 1, nats)
    assert "largest possible" not in said


@pytest.mark.parametrize(("errors", "has_spread"), [((0.2, 0.2), False), ((0.2, 0.3), True)])
def test_a_caption_without_tests_gives_the_reason_for_their_absence(
    errors: tuple[float, float], has_spread: bool
) -> None:
    study = make_study(("erm", "uniform"), seeds=(0, 1))
    ends = {
        (arm, s): {"error": 0.2 if arm == "erm" else errors[s]}
        for arm in study.arms
        for s in (0, 1)
    }
    table = tabulate(study, ended(study, ends))
    same = "Each difference is the same at every seed, so no test is possible."
    assert "shares two seeds" not in table.caption
    assert (same in table.caption) is not has_spread
    assert (spell_family(table.family) == same) is not has_spread
