"""Built-in problems pass the checks that problems of plugins have to pass."""

import pytest

from mixup_core.plugins.findings import findings
from mixup_core.plugins.problem_checks import checks_of_problem
from mixup_core.problem import problem_named


@pytest.mark.parametrize("name", ["alternating-line", "entropy-floor", "separability"])
def test_bundled_problems_meet_every_contract(name: str) -> None:
    found = list(findings(name, checks_of_problem(problem_named(name))))
    assert len(found) >= 6
    assert [each for each in found if each.broken] == []
