"""Every bundled probe passes the checks of `mixsweep check`, as a probe of a plugin must."""

from typing import Any

import pytest

from mixup_core.config.catalogue import kind_name
from mixup_core.images.probes.probe import Probe
from mixup_core.plugins.checking import checks_of_member
from mixup_core.plugins.findings import findings

CONTRACTS = {
    "its values are finite numbers",
    "numbers do not depend on global random generators",
    "no test image is seen in training",
    "measuring does not change the run",
    "it records the metrics that it declares",
    "recorded values are within their bounds",
}
FEW_DRAWS = {"mean-gradient-norm": {"draws": 11}}  # 200 by default
NEEDED: dict[str, dict[str, Any]] = {
    "label-errors": {"data.label_noise": 0.5},
    "filter-scores": {"objective": {"filter": {"teacher": "erm", "teacher_key": "0" * 32}}},
    "multi-view-error": {"data.views": "concat"},
}


@pytest.mark.parametrize("kind", [*Probe.catalogue.values()], ids=kind_name)
def test_a_bundled_probe_passes_the_checks_of_plugins(kind: Any) -> None:
    name = kind_name(kind)
    spelling = FEW_DRAWS if name in FEW_DRAWS else None
    checks = [
        (contract, check)
        for contract, check in checks_of_member(
            "probe", kind, spelling=spelling, values=NEEDED.get(name, {})
        )
        if contract in CONTRACTS
    ]
    found = list(findings(name, checks))
    assert [each for each in found if each.broken] == []
    assert len(found) == len(CONTRACTS)
