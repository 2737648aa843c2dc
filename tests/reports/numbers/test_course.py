import math
from collections.abc import Sequence

import numpy as np
import pytest

from reports.numbers.comparison import compare
from reports.numbers.course import Answer, Question, take_looks
from reports.numbers.summary import t_quantile
from sweeps.study.bounds import nominal_levels
from sweeps.study.claims import UntilDecided

UNTIL = UntilDecided(at_most=20, until="decided")


def asked(
    values: Sequence[float],
    *,
    stored: int | None = None,
    margin: float | None = None,
    lost_at: int | None = None,
) -> Question:
    """Return the question whether the mean of some values is below or above 0."""
    known = len(values) if stored is None else stored

    def is_decided(low: float, high: float) -> bool:
        is_equal = margin is not None and -margin <= low and high <= margin
        return high < 0 or low >= 0 or is_equal

    def compared(n: int) -> object:
        if lost_at is not None and n >= lost_at:
            return None
        return compare({seed: float(values[seed]) for seed in range(n)}, 0.0)

    return Question(
        is_decided=is_decided,
        has_ended=lambda n: n <= known,
        compare=compared,  # type: ignore[arg-type]
    )


def one(*args: Sequence[float], **more: object) -> Answer:
    taken = take_looks(UNTIL, [asked(*args, **more)])  # type: ignore[arg-type]
    return taken[-1][0] if taken else Answer(ending="open")


@pytest.fixture
def noise() -> np.ndarray:
    return np.random.default_rng(1).standard_normal(20)


def test_a_large_difference_is_decided_at_an_early_look(noise: np.ndarray) -> None:
    answer = one(noise + 4)
    assert (answer.ending, answer.look, answer.seeds) == ("decided", 1, 3)
    assert answer.p is not None
    assert answer.p <= 0.05
    level = nominal_levels(UNTIL.sizes, UNTIL.spending, 0.05)[0]
    assert answer.confidence == pytest.approx(1 - level)


def test_the_interval_of_a_look_is_the_t_interval_at_its_level(noise: np.ndarray) -> None:
    answer = one(noise + 4)
    assert answer.comparison is not None
    assert answer.confidence is not None
    low, high = answer.comparison.interval(answer.confidence) or (0.0, 0.0)
    half = t_quantile(3, answer.confidence) * float(np.std(noise[:3], ddof=1)) / math.sqrt(3)
    mean = float(np.mean(noise[:3])) + 4
    assert (low, high) == pytest.approx((mean - half, mean + half))


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


def test_a_difference_within_the_margin_is_decided() -> None:
    answer = one([0.1, -0.12, 0.05] * 7, margin=0.5)
    assert (answer.ending, answer.seeds) == ("decided", 5)


def test_two_questions_share_the_level_until_one_is_decided(
    noise: np.ndarray,
) -> None:
    first, second = take_looks(UNTIL, [asked(noise + 9, stored=3), asked(noise, stored=3)])[-1]
    half, whole = (nominal_levels(UNTIL.sizes, UNTIL.spending, a)[0] for a in (0.025, 0.05))
    assert first.ending == "decided"
    assert first.confidence == pytest.approx(1 - half)
    assert second.confidence == pytest.approx(1 - whole)


@pytest.mark.parametrize(("effects", "margin"), [((0.0, 0.0), None), ((0.0, 1.0), 0.75)])
def test_wrong_decisions_over_all_looks_and_questions_stay_at_5_percent(
    effects: tuple[float, ...], margin: float | None
) -> None:
    """With 200 studies, the fraction of wrong ones is below 10 % in all but 1 of 700 tests."""
    random = np.random.default_rng(7)
    wrong = 0
    for _ in range(200):
        drawn = random.standard_normal((len(effects), 20))
        questions = [
            asked(row + effect, margin=margin) for row, effect in zip(drawn, effects, strict=True)
        ]
        answers = take_looks(UNTIL, questions)[-1]
        for effect, answer in zip(effects, answers, strict=True):
            if answer.ending != "decided" or answer.comparison is None:
                continue
            low, high = answer.comparison.interval(answer.confidence or 0) or (0, 0)
            if not low <= effect <= high:
                wrong += 1
                break
    assert wrong / 200 <= 0.1
