"""Head to head: two arms over their common seeds, compared with SciPy; and impossible pairs."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from mixup_core.config.building import with_values
from reports.tables.head_to_head import HeadToHead, StudyArm, head_to_head
from sweeps.state.results import RunResult
from sweeps.study.readouts import MeanOfLast
from sweeps.study.study import Study
from tests.reports.synthetic import FINISHED, SMALL, ended, with_oracle

ERROR = "test/error"


def against(study: Study, results: Sequence[RunResult], arms: str = "uniform erm") -> HeadToHead:
    first, second = (StudyArm(study=study, arm=arm, results=tuple(results)) for arm in arms.split())
    return head_to_head(first, second, ERROR)


def last_errors(results: Sequence[RunResult], arm: str) -> dict[int, float]:
    return {
        result.run.seed: result.records[-1].metrics[ERROR]
        for result in results
        if result.run.arm == arm and result.outcome == "complete"
    }


def test_seeds_that_one_arm_lacks_are_shown_and_not_compared() -> None:
    ends = {("uniform", 1): {"epochs": 3}, ("erm", 3): {"epochs": 0}, ("erm", 4): {"epochs": 1}}
    results = ended(SMALL, ends)
    found = against(SMALL, results)
    ours, theirs = last_errors(results, "uniform"), last_errors(results, "erm")
    assert (list(ours), list(theirs)) == ([0, 2, 3, 4], [0, 1, 2])
    assert found.values == (ours, theirs)
    assert found.comparison.n == 2
    expected = np.mean([ours[seed] - theirs[seed] for seed in (0, 2)])
    assert found.comparison.difference == pytest.approx(expected)
    comparison, by_seed = found.listings()
    assert [line[2] for line in comparison.cells] == ["4", "3"]
    assert "paired differences over the 2 seeds that both have" in comparison.caption
    shown = {line[0]: line[1:] for line in by_seed.cells}
    assert list(shown) == ["0", "1", "2", "3", "4"]
    assert shown["1"] == ("—", f"{100 * theirs[1]:.2f}", "—")
    assert shown["3"] == (f"{100 * ours[3]:.2f}", "—", "—")
    assert shown["2"][2] == f"{100 * (ours[2] - theirs[2]):.2f}"
    assert by_seed.records[1] == {
        "seed": 1, "first": None, "second": theirs[1], "difference": None,
    }  # fmt: skip
    assert by_seed.records[2]["difference"] == ours[2] - theirs[2]


def test_the_value_of_a_run_follows_the_readout_of_the_study() -> None:
    mean = replace(SMALL, readout=MeanOfLast(evaluations=3))
    found = against(mean, FINISHED)
    expected = {
        result.run.seed: np.mean([record.metrics[ERROR] for record in result.records[-3:]])
        for result in FINISHED
        if result.run.arm == "uniform"
    }
    assert found.values[0] == pytest.approx(expected)
    assert found.values[0] != last_errors(FINISHED, "uniform")


def test_arms_that_cannot_be_paired_by_seed_are_refused_with_the_differing_setting() -> None:
    other = with_values(SMALL.arms["uniform"], {"data.val_size": 1000, "batch_size": 50})
    mixed = replace(SMALL, arms={**SMALL.arms, "uniform": other})
    results = ended(mixed, {})
    said = "arms uniform and erm cannot be paired by seed, because they differ in data.val_size"
    with pytest.raises(ValueError, match=said):
        against(mixed, results)
    assert against(mixed, results, arms="midpoint erm").comparison.n == 5


def test_an_oracle_is_marked_in_the_tables_and_in_json() -> None:
    study = with_oracle(SMALL, "uniform")
    found = against(study, ended(study, {}))
    comparison, by_seed = found.listings()
    assert comparison.title == "uniform [oracle] against erm"
    assert [line[0] for line in comparison.cells] == ["uniform [oracle]", "erm"]
    assert by_seed.header[1:3] == ("uniform [oracle]", "erm")
    assert "[oracle]: the arm or its teacher was trained on the test images" in comparison.caption
    assert (found.record()["arms"], found.record()["tags"]) == (
        ["uniform", "erm"],
        [["oracle"], []],
    )
    plain = against(SMALL, FINISHED)
    assert plain.record()["tags"] == [[], []]
    assert "oracle" not in "".join(listing.markdown() for listing in plain.listings())


@pytest.mark.parametrize("arms", ["erm erm", "erm kept"])
def test_an_arm_is_not_compared_with_one_of_equal_results(arms: str) -> None:
    kept = with_values(SMALL.arms["erm"], {"averaging": {"ema": 0.9}})
    twice = replace(SMALL, arms={**SMALL.arms, "kept": kept})
    with pytest.raises(ValueError, match="have equal results at every seed"):
        against(twice, ended(twice, {}), arms=arms)
