"""Error rates: quick versions of the table in docs/explanation/error-rates.md."""

import math
from pathlib import Path

import pytest

from tests.reports.numbers.error_rates import Case, cases, rate

NUMBER = 200
DOCUMENTED = 20_000
"""Number of simulated studies per line of the document."""
DOCUMENT = Path(__file__).parents[3] / "docs" / "explanation" / "error-rates.md"


@pytest.mark.parametrize("case", list(cases()), ids=lambda case: f"{case.name}: {case.truth}")
def test_the_rate_of_wrong_simulated_studies_stays_within_its_limit(case: Case) -> None:
    assert rate(case, NUMBER) <= largest(case, NUMBER)


def largest(case: Case, number: int) -> float:
    """Return the limit plus three standard errors, exceeded by chance 1 time in 700."""
    return case.limit + 3 * math.sqrt(case.limit * (1 - case.limit) / number)


def test_documented_error_rates_cover_every_case_and_stay_within_limits() -> None:
    lines = DOCUMENT.read_text().splitlines()
    grid = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
    documented = {(row[0], row[1]): row[2:] for row in grid if len(row) == 4}
    for case in cases():
        found, limit = documented[case.name, case.truth]
        assert float(limit) == pytest.approx(100 * case.limit)
        assert float(found) <= 100 * largest(case, DOCUMENTED)
    assert f"{DOCUMENTED:,} studies" in DOCUMENT.read_text()
