import numpy as np
import pytest

from reports.numbers.comparison import compare
from reports.numbers.course import Question, take_looks
from reports.numbers.foresight import draw_after, draw_effects, foresee
from sweeps.study.claims import UntilDecided

UNTIL = UntilDecided(at_most=20, until="decided")


def is_told(low: float, high: float) -> bool:
    return low > 0 or high < 0


def test_simulated_looks_end_at_the_same_look_as_real_looks() -> None:
    drawn = draw_effects(UNTIL, [0.0, 0.8], studies=20)
    found = foresee(UNTIL, [is_told, is_told], drawn, tests=2)
    for place in range(20):
        for claim in range(2):
            values = drawn[place, claim]

            def question(values: np.ndarray = values) -> Question:
                return Question(
                    is_decided=is_told,
                    has_ended=lambda n: True,
                    compare=lambda n: compare({s: float(values[s]) for s in range(n)}, 0.0),
                )

            # the other question is never decided, so that this one keeps its half of the level
            idle = Question(
                is_decided=lambda low, high: False,
                has_ended=lambda n: True,
                compare=lambda n: compare({s: float(s) for s in range(n)}, 0.0),
            )
            answer = take_looks(UNTIL, [question(), idle])[-1][0]
            assert answer.seeds == found.seeds[place, claim]
            assert (answer.ending == "decided") == found.is_decided[place, claim]


# Fixed designs of the same power: 16 seeds for 1 sd, see docs/explanation/statistics.md.
@pytest.mark.parametrize(
    ("effect", "most_seeds", "least_power"),
    [(0.0, 12.5, 0.0), (1.0, 12.0, 0.93), (1.5, 8.5, 0.99), (2.0, 7.0, 0.99)],
)
def test_looks_take_fewer_seeds_than_a_fixed_design(
    effect: float, most_seeds: float, least_power: float
) -> None:
    found = foresee(UNTIL, [is_told], draw_effects(UNTIL, [effect], studies=400))
    assert found.seeds.mean() <= most_seeds
    share = found.is_decided.mean()
    assert share >= least_power
    if effect == 0:
        assert share <= 0.083, "5 % is exceeded by chance in 1 of 1,000 tests of 400 studies"


def test_simulated_seeds_after_a_pilot_keep_its_values_mean_and_spread() -> None:
    rng = np.random.default_rng(1)
    pilot = [dict(enumerate(row)) for row in rng.normal([[1.0], [-2.0]], [[1.0], [0.5]], (2, 12))]
    drawn = draw_after(UNTIL, pilot, studies=4_000)
    assert drawn.shape == (4_000, 2, 20)
    known = np.array([list(by_seed.values()) for by_seed in pilot])
    assert (drawn[:, :, :12] == known).all()
    assert drawn[:, :, 12:].mean((0, 2)) == pytest.approx(known.mean(1), abs=0.05)
    spread = known.std(1, ddof=1) * np.sqrt((1 + 1 / 12) * 11 / 9)  # Student t with 11 degrees
    assert drawn[:, :, 12:].std((0, 2)) == pytest.approx(spread, rel=0.05)
    own = np.corrcoef(known)[0, 1]
    assert np.corrcoef(drawn[:, 0, 15], drawn[:, 1, 15])[0, 1] == pytest.approx(own, abs=0.06)
