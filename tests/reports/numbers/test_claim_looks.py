from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from reports.numbers.claim_looks import ends_if_measured, reached
from reports.numbers.judging import judge, spell_variants
from reports.numbers.verdict import Verdict
from sweeps.study.claims import Claim, UntilDecided
from sweeps.study.study import Study
from tests.reports.synthetic import make_study
from tests.reports.tables.test_claim_tables import claim

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
    found = reached(study, lambda _: numbers, ends_if_measured(study, lambda _: numbers))
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
