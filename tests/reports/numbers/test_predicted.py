from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
import scipy.stats
from scipy.special import softmax

from mixup_core.predictions import Predictions, Split
from reports.numbers.judging import verdicts_of
from reports.numbers.predicted import Predicted, gather_predictions, pseudo_values
from reports.numbers.runs import arrange
from reports.tables.claim_tables import spell_compared
from sweeps.state.results import RunResult
from sweeps.study.claims import UntilDecided
from sweeps.study.readouts import Averaged, Last, MeanOfLast
from sweeps.study.study import Study
from tests.reports.synthetic import FINISHED, SMALL, claim, ended
from tests.reports.synthetic_predictions import reader, split_of


def gathered(study: Study, results: tuple[RunResult, ...]) -> Predicted:
    return gather_predictions(study, arrange(study, results), reader())


def test_numbers_of_predictions_of_an_arm_follow_from_its_runs() -> None:
    predicted = gathered(SMALL, FINISHED)
    assert list(predicted.arms) == ["erm", "midpoint", "uniform"]
    splits = [split_of("midpoint", seed) for seed in range(5)]
    labels = splits[0].labels
    chances = [softmax(split.logits[""].astype(float), axis=1) for split in splits]
    wrong = np.array([chance.argmax(1) != labels for chance in chances])
    together = np.mean(chances, axis=0).argmax(1) != labels
    arm = predicted.arms["midpoint"]
    assert arm.error == pytest.approx(wrong.mean())
    assert arm.ensemble_error == pytest.approx(together.mean())
    assert arm.gain == pytest.approx(wrong.mean() - together.mean())
    saved = wrong.mean(0) - together
    low, high = scipy.stats.norm.interval(0.95, saved.mean(), scipy.stats.sem(saved))
    ends = arm.gain - arm.gain_half_width, arm.gain + arm.gain_half_width
    assert ends == pytest.approx((low, high))
    gains, differ = [], []
    for first, second in combinations(range(5), 2):
        pair = (chances[first] + chances[second]).argmax(1) != labels
        gains.append((wrong[first].mean() + wrong[second].mean()) / 2 - pair.mean())
        differ.append((chances[first].argmax(1) != chances[second].argmax(1)).mean())
    assert np.mean(list(arm.pair_gain.values())) == pytest.approx(np.mean(gains))
    assert np.mean(list(arm.disagreement.values())) == pytest.approx(np.mean(differ))
    for label in range(4):
        for seed in range(5):
            share = wrong[seed][labels == label].mean()
            assert arm.runs[seed].classes[label] == pytest.approx(share)


def test_predictions_of_averaged_weights_are_used_for_the_averaged_readout() -> None:
    arranged = arrange(SMALL, FINISHED)
    last, averaged = (
        gather_predictions(replace(SMALL, readout=readout), arranged, reader()).arms["erm"].runs[0]
        for readout in (Last(), Averaged())
    )
    own, usual = (run.measures["temperature"] for run in (averaged, last))
    assert averaged.error == last.error
    assert own == pytest.approx(usual / 2, rel=1e-2)


def test_planned_looks_use_predictions_of_complete_runs_beside_a_diverged_run() -> None:
    ends = {("uniform", 4): {"epochs": 3, "failure": "lost", "kind": "diverged"}}
    arranged = arrange(SMALL, ended(SMALL, ends))
    assert "uniform" not in gather_predictions(SMALL, arranged, reader()).claimed_values("brier")
    looks = replace(SMALL, until=UntilDecided(at_most=5, until="decided"))
    predicted = gather_predictions(looks, arranged, reader())
    assert list(predicted.claimed_values("brier")["uniform"]) == [0, 1, 2, 3]
    assert predicted.values("brier").keys() == predicted.arms.keys() == {"erm", "midpoint"}
    assert predicted.counts == "predictions of 10 of 10 runs"


CHANGES: dict[str, Callable[[Split], Split]] = {
    "other images": lambda split: replace(split, images="00"),
    "other labels": lambda split: replace(split, labels=np.roll(split.labels, 1)),
    "more classes": lambda split: replace(
        split, logits={name: np.pad(of, ((0, 0), (0, 1))) for name, of in split.logits.items()}
    ),
    "fewer images": lambda split: split_of("erm", 0, size=10),
}


@pytest.mark.parametrize("change", CHANGES)
def test_predictions_that_do_not_fit_those_of_other_runs_count_as_missing(change: str) -> None:
    def read(wanted: Sequence[RunResult]) -> list[Predictions | None]:
        found = list(reader()(wanted))
        if wanted[0].run.arm == "erm":
            test = CHANGES[change](found[1].splits["test"])
            found[1] = Predictions(splits={**found[1].splits, "test": test})
        return found

    predicted = gather_predictions(SMALL, arrange(SMALL, FINISHED), read)
    assert predicted.counts == "predictions of 14 of 15 runs"
    assert list(predicted.arms["erm"].runs) == [0, 2, 3, 4]


def test_one_test_image_has_no_spread() -> None:
    def read(wanted: Sequence[RunResult]) -> list[Predictions]:
        return [Predictions(splits={"test": split_of("erm", 0, size=1)}) for _ in wanted]

    predicted = gather_predictions(SMALL, arrange(SMALL, FINISHED), read)
    assert predicted.arms["erm"].spread is None


def test_pseudo_values_agree_with_leave_one_out_estimates() -> None:
    rng = np.random.default_rng(0)
    by_pair = rng.normal(size=(6, 6))
    by_pair += by_pair.T

    def over_pairs(kept: list[int]) -> float:
        return float(np.mean([by_pair[pair] for pair in combinations(kept, 2)]))

    whole = over_pairs(list(range(6)))
    without = [over_pairs([*range(out), *range(out + 1, 6)]) for out in range(6)]
    expected = 6 * whole - 5 * np.array(without)
    np.testing.assert_allclose(pseudo_values(by_pair), expected)


def test_ensembles_are_compared_with_single_networks_at_equal_seeds() -> None:
    predicted = gathered(SMALL, FINISHED)
    made = claim("less", metric="predicted/accuracy", together=("erm",), networks=3)
    claimed = replace(SMALL, claims=(made,))
    (verdict,) = verdicts_of(claimed, arrange(SMALL, FINISHED), predicted)
    of_three = predicted.arms["erm"].sizes[3].measures["error"]
    alone = 1 - predicted.arms["uniform"].error
    assert verdict.value == pytest.approx(alone - (1 - of_three.mean))
    assert verdict.n == 5
    ten = claim("less", metric="predicted/accuracy", together=("erm",), networks=10)
    of_ten = replace(SMALL, claims=(ten,))
    (never,) = verdicts_of(of_ten, arrange(SMALL, FINISHED), predicted)
    assert never.spelled == "undecided (no ensembles, because they need 10 seeds or more)"
    assert "(3 networks of erm together)" in spell_compared(claimed, made)
    for readout in (Averaged(), MeanOfLast(evaluations=2)):
        study = replace(claimed, readout=readout)
        weights = gathered(study, FINISHED).weights
        assert f", {weights}: uniform less than erm" in spell_compared(study, made)
