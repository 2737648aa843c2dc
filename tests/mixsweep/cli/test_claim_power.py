"""Claim power: differences that seeds find, and seeds that looks will need."""

from dataclasses import replace
from pathlib import Path

import pytest

from mixsweep.cli.claim_power import claim_powers, spell_powers
from mixsweep.cli.plan_summary import plan_summary, spell_plan
from mixup_core.records import EpochRecord
from mixup_core.store.checkpoints import Store
from reports.numbers.comparison import compare
from reports.numbers.looks import reached_study
from reports.numbers.power import detectable_difference, seeds_to_find
from reports.numbers.summary import Measure
from sweeps.study.claims import Claim, StatedComparison
from sweeps.study.search import SearchHistory
from sweeps.study.study import Study
from tests.filled import put
from tests.reports.synthetic import ended, make_study
from tests.sweeps.searching.test_sources import TEXT, error_of, source_of
from tests.sweeps.small_searches import read


def claiming(study: Study, *comparisons: StatedComparison) -> Study:
    claims = tuple(Claim(says=str(n), source="a", that=c) for n, c in enumerate(comparisons))
    return replace(study, claims=claims)


LESS = StatedComparison(metric="test/error", less=("uniform", "erm"))
NLL = StatedComparison(metric="test/nll", less=("uniform", "erm"))


def test_claims_of_one_family_have_equal_power() -> None:
    study = claiming(make_study(), LESS, NLL)
    first, second = claim_powers(study)
    assert first["found_sd"] == second["found_sd"] == detectable_difference(5, 2)
    assert second["never_below"] is None
    lines = spell_powers(study, [first, second])
    found = "5 seeds find a difference of 2.1 sd over seeds 4 times in 5"
    assert lines[0].startswith(f"0: {found}, and never a difference below ")
    assert lines[1] == f"1: {found}"


def test_only_differences_above_the_stated_minimum_can_be_significant() -> None:
    (power,) = claim_powers(claiming(make_study(), LESS))
    images = Measure(least=0.0, most=1.0, size=10_000)
    theirs = {seed: 0.2 + seed / 1000 for seed in range(5)}
    for factor, is_told in ((0.9, False), (1.2, True)):
        ours = {s: value + factor * power["never_below"] for s, value in theirs.items()}
        p = compare(ours, theirs, images, images).p
        assert p is not None
        assert (p <= 0.05) == is_told


def test_stored_seeds_give_the_detectable_difference_and_the_seeds_for_a_margin() -> None:
    within = StatedComparison(metric="test/error", within=("uniform", "erm"), margin=0.01)
    study = claiming(make_study(), LESS, within)
    first, second = claim_powers(study, ended(study, {}))
    assert first["pilot"] == 5
    assert first["margin"] is None
    assert first["needed"] is None
    assert second["needed"] == seeds_to_find(0.01 / second["sd"], 2, is_between=True)
    lines = spell_powers(study, [first, second])
    found = 100 * first["found_sd"] * first["sd"]
    assert f"which is {found:.2g} points at the sd of 5 stored seeds" in lines[0]
    assert lines[1].endswith(f"a margin of 1 points needs {second['needed']} seeds")
    (equal, _) = claim_powers(replace(study, equivalence=0.005), ended(study, {}))
    assert equal["needed"] == seeds_to_find(0.005 / first["sd"], 2)


@pytest.fixture
def study(tmp_path: Path) -> Study:
    return read(tmp_path, TEXT)


def text_of(study: Study, store: Store, price: float | None = None) -> str:
    reached = reached_study(study, store)
    return spell_plan(plan_summary(reached, SearchHistory(), store, slots=2, price=price))


def test_a_plan_before_the_first_run_shows_expected_runs_for_each_effect_size(
    study: Study, store: Store
) -> None:
    found = plan_summary(reached_study(study, store), SearchHistory(), store, slots=2)["looks"]
    assert found["most"] == {"runs": 3 * 20 + 3, "to_run": 63, "seconds": None}
    by_sd = {sd: each["to_run"] for sd, each in found["expected_by_sd"].items()}
    assert list(by_sd) == ["0", "0.5", "1", "2"]
    assert all(12 <= runs <= 63 for runs in by_sd.values())
    assert by_sd["2"] < by_sd["1"] < by_sd["0.5"]
    text = text_of(study, store)
    assert "looks     at 3, 5, 8, 11, 15, 20 seeds; 2 claims open" in text
    assert "s: at least 12 runs, 0 stored, at least 12 to run" not in text
    assert "if each true value is 1 sd over seeds from the limit of its claim" in text


def test_a_plan_after_a_look_estimates_runs_and_cost_from_the_stored_spread(
    study: Study, store: Store
) -> None:
    (first, *_) = (source := source_of(study, store)).more(()), None
    for planned in first:
        metrics = {"test/error": error_of(planned.run)}
        put(store, planned.run, [EpochRecord(epoch=epoch, metrics=metrics) for epoch in range(2)])
        source.end(planned.run, failed=False)
    found = plan_summary(
        reached_study(study, store), SearchHistory(), store, slots=2, price=3_600.0
    )["looks"]
    assert found["open"] == 1, "far is decided at the first look"
    assert found["most"]["to_run"] == 2 * 17
    assert 4 <= found["expected"]["to_run"] <= 34
    assert found["expected"]["seconds"] == pytest.approx(found["expected"]["to_run"])
    assert found["expected"]["cost"] == pytest.approx(2 * found["expected"]["to_run"])
    assert "if new seeds vary like the stored ones" in text_of(study, store, 3_600.0)
