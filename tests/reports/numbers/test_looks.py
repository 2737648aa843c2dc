"""Tests of planned looks: verdicts and numbers of seeds."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from reports.numbers.judging import judge, spell_variants
from reports.numbers.looks import (
    Answer,
    Looked,
    Question,
    chance_at_the_end,
    ends_if_measured,
    take_looks,
)
from reports.numbers.verdict import Verdict
from sweeps.study.bounds import nominal_levels
from sweeps.study.claims import Claim, UntilDecided
from sweeps.study.study import Study
from tests.reports.synthetic import alone, claim, make_study

UNTIL = UntilDecided(at_most=20, until="decided")


def asked(
    values: Sequence[float], *, stored: int | None = None, lost_at: float = math.inf
) -> Question:
    """Return the question whether the mean of some values is below or above 0."""
    known = len(values) if stored is None else stored
    return Question(
        is_decided=lambda low, high: high < 0 or low >= 0,
        has_ended=lambda n: n <= known,
        compare=lambda n: None if n >= lost_at else alone(values[:n]),
    )


def one(values: Sequence[float]) -> Answer:
    return take_looks(UNTIL, [asked(values)])[-1][0]


@pytest.fixture
def noise() -> np.ndarray:
    return np.random.default_rng(1).standard_normal(20)


def test_a_large_difference_is_decided_at_an_early_look(noise: np.ndarray) -> None:
    answer = one(noise + 4)
    assert (answer.ending, answer.look, answer.seeds) == ("decided", 1, 3)
    assert answer.p <= 0.05
    level = nominal_levels(UNTIL.sizes, UNTIL.spending, 0.05)[0]
    assert answer.confidence == pytest.approx(1 - level)


def test_a_lost_run_ends_only_its_own_question(noise: np.ndarray) -> None:
    lost, other = take_looks(UNTIL, [asked(noise, lost_at=4), asked(noise + 4)])[-1]
    assert (lost.ending, lost.comparison) == ("lost", None)
    assert other.ending == "decided"


def test_a_question_unlikely_to_be_decided_at_the_last_look_ends_as_futile() -> None:
    answer = one([1.0, -1.1] * 10)
    assert (answer.ending, answer.seeds < 20) == ("futile", True)
    never = UntilDecided(at_most=20, until="decided", futility=0)
    (answer,) = take_looks(never, [asked([1.0, -1.1] * 10)])[-1]
    assert (answer.ending, answer.look, answer.seeds) == ("last", 6, 20)


def test_two_questions_share_the_level_until_one_is_decided(
    noise: np.ndarray,
) -> None:
    first, second = take_looks(UNTIL, [asked(noise + 9, stored=3), asked(noise, stored=3)])[-1]
    half, whole = (nominal_levels(UNTIL.sizes, UNTIL.spending, a)[0] for a in (0.025, 0.05))
    assert first.ending == "decided"
    assert first.confidence == pytest.approx(1 - half)
    assert second.confidence == pytest.approx(1 - whole)


SEEDS = 12
ERRORS = {"erm": 0.3, "midpoint": 0.302, "uniform": 0.2}


def study_of(*claims: Claim, equivalence: float | None = None) -> Study:
    study = make_study(seeds=tuple(range(SEEDS)))
    until = UntilDecided(at_most=SEEDS, until="decided")
    return replace(study, claims=claims, until=until, equivalence=equivalence)


def errors(num: int = SEEDS, sd: float = 0.004) -> dict[str, dict[int, float]]:
    noise = np.random.default_rng(3).normal(0, sd, (3, SEEDS))
    return {
        arm: {seed: float(mean + noise[place, seed]) for seed in range(num)}
        for place, (arm, mean) in enumerate(ERRORS.items())
    }


def judged(study: Study, num: int = SEEDS, sd: float = 0.004) -> Sequence[Verdict]:
    return judge(study, lambda _: errors(num, sd))


def test_mirrored_claims_share_one_test_and_have_opposite_verdicts() -> None:
    study = study_of(claim("less"), claim("greater"), claim("greater", "erm", "uniform"))
    less, greater, mirrored = judged(study)
    assert (less.verdict, greater.verdict, mirrored.verdict) == ("holds", "fails", "holds")
    assert less.value == greater.value == pytest.approx(-(mirrored.value or 0))
    assert (less.low, less.high) == pytest.approx((-mirrored.high, -mirrored.low))  # type: ignore[operator]
    assert less.p == greater.p == mirrored.p
    assert less.looks == greater.looks == mirrored.looks


def test_an_arm_gets_the_seeds_of_the_next_look_while_a_claim_about_it_is_open() -> None:
    study = study_of(claim("less"), claim("less", "midpoint"))
    numbers = errors(3)
    ends = ends_if_measured(study, lambda _: numbers)
    found = Looked(study=study, numbers=lambda _: numbers, ends=ends).reached()
    assert found.reached == {"erm": 4, "midpoint": 4, "uniform": 3}
    assert [len(found.runs_of(arm)) for arm in found.arms] == [4, 4, 3]


def test_a_claim_within_the_margin_of_the_study_is_equivalent() -> None:
    study = study_of(claim("less", "midpoint"), equivalence=0.02)
    (found,) = judged(study)
    assert found.verdict == "equivalent"
    assert found.spelled.startswith("equivalent at look ")
    assert -0.02 <= (found.low or 1) <= (found.high or 1) <= 0.02


def test_a_claim_that_no_look_decides_is_undecided_at_the_last_seeds() -> None:
    until = UntilDecided(at_most=SEEDS, until="decided", futility=0)
    (found,) = judged(replace(study_of(claim("less", "midpoint")), until=until))
    assert found.spelled == f"undecided at {SEEDS} seeds, look 6 of 6"


def test_a_look_waits_until_all_open_claims_have_its_seeds() -> None:
    study = study_of(claim("less"), claim("less", "midpoint"))
    first, second = judged(study, num=2)
    assert (first.spelled, second.spelled) == ("unfinished", "unfinished")
    first, second = judged(study, num=3)
    assert first.spelled == "holds at look 1 of 6"
    assert second.spelled == "unfinished after look 1 of 6"


def test_a_variant_without_further_seeds_is_undecided_and_not_unfinished() -> None:
    """The study's own claim ends the looks, although the variant's claim would need more."""
    (given_up,) = judged(study_of(claim("less", "midpoint")), num=SEEDS)
    (open_still,) = judged(study_of(claim("less", "midpoint")), num=3)
    assert (given_up.verdict, open_still.verdict) == ("undecided", "unfinished")
    ended = replace(open_still, n=given_up.n, value=given_up.value)
    assert spell_variants(given_up, {"cosine": (ended,)}) == "same under cosine"
    assert "unfinished" in spell_variants(given_up, {"cosine": (open_still,)})


def test_the_chance_that_decides_over_futility_stays_the_same_number() -> None:
    """Another number of predicted means would give up claims of old studies elsewhere."""
    few = chance_at_the_end(UNTIL, lambda low, high: low > 0, 5, 0.5, 1.0, 0.01)
    more = chance_at_the_end(UNTIL, lambda low, high: low > 0, 8, 0.3, 1.0, 0.02)
    assert (few, more) == pytest.approx((0.37, 0.18))
