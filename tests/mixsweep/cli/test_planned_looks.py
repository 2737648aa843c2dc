from pathlib import Path

import pytest

from mixsweep.cli.plan_summary import plan_summary, spell_plan
from mixup_core.store.checkpoints import Store
from reports.numbers.looks import reached_study
from sweeps.study.search import SearchHistory
from sweeps.study.study import Study
from tests.sweeps.searching.test_sources import TEXT, source_of, write
from tests.sweeps.small_searches import read


@pytest.fixture
def study(tmp_path: Path) -> Study:
    return read(tmp_path, TEXT)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(str(tmp_path / "store"))


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
        write(store, planned.run)
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
