"""Tests that every theory problem has to pass."""

import subprocess
import sys
from typing import Any

import pytest

from mixup_core.config.building import built, with_values
from mixup_core.config.written_forms import flatten
from mixup_core.keys import run_key
from mixup_core.problem import PROBLEMS, problem_named
from mixup_core.rules import RuleError
from tests.mixup_core.theory.processes import assert_resumes_anywhere

NAMES = [name for name, place in PROBLEMS.items() if place.startswith("mixup_core.theory.")]

SMALL: dict[str, dict[str, Any]] = {
    "entropy-floor": {"draws": 100},
    "linear-views": {"quantity": {"excess": {"points": 10}}, "epochs": 3},
    "alternating-line": {"hidden": 8, "epochs": 3},
    "support-vectors": {"epochs": 3},
    "moons": {"points": 20, "hidden": 8, "resolution": 10, "steps_per_epoch": 5, "epochs": 3},
    "two-layer": {"data.classes": 3, "network.power": 4, "network.init": 0.3, "epochs": 4},
    "label-noise-bound": {"draws": 100, "epochs": 3},
    "random-features": {"points": 10, "features": 8, "test_points": 50, "epochs": 4},
    "rare-features": {"dimension": 20, "points": 10, "steps_per_epoch": 5, "epochs": 3},
    "separability": {"first_points": 16, "epochs": 2},
    "spurious-feature": {"points": 20, "epochs": 2},
    "gaussian-features": {"samples": 20, "epochs": 3},
    "mixup-expansion": {"first_points": 8, "rank": 2, "test_points": 20, "epochs": 2},
}
"""A quick run of each problem whose defaults take longer."""


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("law", ["erm", "midpoint", {"beta": 1.0}], ids=str)
def test_a_run_resumed_at_any_epoch_ends_with_the_same_bits(name: str, law: Any) -> None:
    assert_resumes_anywhere(
        with_values(problem_named(name).config(), {**SMALL.get(name, {}), "law": law})
    )


@pytest.mark.parametrize("name", NAMES)
def test_default_configurations_round_trip_through_their_flat_form(name: str) -> None:
    problem = problem_named(name)
    config = problem.config()
    assert with_values(config, flatten(config)) == config
    assert run_key(config) != run_key(with_values(config, {"seed": 1}))
    assert problem.presentation.setting(config, problem.headline[0])
    assert hash(problem.comparing.population(config)) == hash(problem.comparing.population(config))
    assert problem.cost.work(config) >= 1


@pytest.mark.parametrize("name", NAMES)
def test_plain_laws_have_a_method_name_in_every_problem(name: str) -> None:
    problem = problem_named(name)
    config = problem.config()
    for law, method in (("erm", "erm"), ("midpoint", "midpoint"), ({"beta": 1.0}, "uniform")):
        assert problem.presentation.method(with_values(config, {"law": law})) == method
    assert problem.presentation.method(with_values(config, {"law": {"beta": 0.5}})) is None


@pytest.mark.parametrize(
    ("name", "values", "rule"),
    [
        ("alternating-line", {"classes": 4}, "classes <= points"),
        ("entropy-floor", {"epochs": 2}, "epochs == 1"),
        ("mixup-expansion", {"nodes": 7}, "even"),
        ("moons", {"points": 5}, "points must be even"),
        ("rare-features", {"switch_epoch": 17}, "switch_epoch <= epochs"),
        ("rare-features", {"law_after": "midpoint"}, "law_after needs a switch_epoch"),
        ("rare-features", {"patches": 5, "noise_features": 5}, "noise_features < patches"),
        ("separability", {"first_points": 10}, "first_points > dimension"),
        ("separability", {"nodes": 3}, "nodes must be even"),
        ("spurious-feature", {"nodes": 5}, "nodes must be even"),
        ("support-vectors", {"points": 3}, "points must be even"),
    ],
)
def test_values_that_contradict_each_other_are_refused(
    name: str, values: dict[str, Any], rule: str
) -> None:
    """`tests/contracts/test_ranges_of_fields.py` has the ranges of single fields."""
    with pytest.raises(RuleError, match=rule):
        built(problem_named(name).config, values)


def test_loading_the_problems_imports_neither_torch_nor_scipy() -> None:
    code = (
        "import sys; from mixup_core.problem import problem_named\n"
        f"for name in {NAMES!r}: problem_named(name)\n"
        "assert not {'torch', 'scipy', 'ray', 'optuna', 'mlflow'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
