"""Every built-in entry passes the checks of `mixsweep check`, as an entry of a plugin must."""

from collections.abc import Iterator
from typing import Any

import pytest

from mixup_core.config.catalogue import Catalogue, kind_name
from mixup_core.plugins.checking import checks_of_member
from mixup_core.plugins.stand_ins import REGISTERS
from mixup_core.plugins.suite import checks_of_problem, findings
from mixup_core.problem import problem_named

SPELLED: dict[str, Any] = {
    "mean-gradient-norm": {"mean-gradient-norm": {"draws": 11}},  # 200 by default
    "timm": {"name": "timm", "architecture": "test_resnet"},
    "adam": {"name": "adam", "weight_decay": 0.1},
    "sgd": {"name": "sgd", "lr": 0.05, "momentum": 0.5, "weight_decay": 0.1},
}
NEEDED: dict[str, dict[str, Any]] = {
    "label-errors": {"data.label_noise": 0.5},
    "filter-scores": {"objective": {"filter": {"teacher": "erm", "teacher_key": "0" * 32}}},
    "multi-view-error": {"data.views": "concat"},
    "failure-set": {"data.oracle": True},
}
BROKEN = {"failure-set": ["it trains without test images"]}
"""Checks that an entry fails: no entry of a plugin may train on test images."""
LONG = {"puzzlemix", "randaugment", "mean-gradient-norm"}
"""Entries whose checks take more than ten seconds."""


def _members() -> Iterator[Any]:
    for noun, register in REGISTERS.items():
        for name, kind in register.items() if isinstance(register, Catalogue) else ():
            is_long = name in LONG or noun == "model"
            yield pytest.param(kind, id=f"{noun} {name}", marks=[pytest.mark.long] * is_long)


@pytest.mark.parametrize("kind", [*_members()])
def test_a_built_in_class_passes_the_checks_of_plugins(kind: Any) -> None:
    name = kind_name(kind)
    checks = checks_of_member(kind, spelling=SPELLED.get(name), values=NEEDED.get(name, {}))
    found = list(findings(name, checks))
    assert len(found) >= 11
    broken = {each.contract: each.broken for each in found if each.broken}
    assert [*broken] == BROKEN.get(name, []), broken


@pytest.mark.parametrize("name", ["alternating-line", "entropy-floor", "separability"])
def test_a_built_in_problem_passes_the_checks_of_plugins(name: str) -> None:
    found = list(findings(name, checks_of_problem(problem_named(name))))
    assert len(found) >= 7
    assert {each.contract for each in found if each.broken} <= {
        "every field of numbers has a range"  # the points of `separability` may be any numbers
    }
