import pytest

from tests.reports.numbers.look_rates import CASES, look_rates

STUDIES = 1_000
"""Number of studies; a true rate of 5 % is then above 7.2 % in 1 of 1,000 tests."""


MOST_SEEDS = (14.0, 17.0, 14.6, 14.0, 15.0, 15.0, 12.0, 8.0, 6.7)


@pytest.mark.parametrize(("case", "most_seeds"), [*zip(CASES, MOST_SEEDS, strict=True)])
def test_planned_looks_have_a_low_error_rate_and_need_few_seeds(
    case: tuple[float, float | None], most_seeds: float
) -> None:
    found = look_rates(*case, STUDIES)
    assert found.wrong <= 0.072
    assert found.covered >= 0.928
    assert found.seeds <= most_seeds
    if case[0] == 1:
        assert found.seeds / found.fixed <= 0.76
