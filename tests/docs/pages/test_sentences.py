"""Sentences of claims: the arms, numbers and times that they name are those that are tested."""

import math

from sweeps.reading.study_file import bundled_names
from tests.bundled import bundled


def test_a_claim_agrees_with_its_source() -> None:
    for name in bundled_names():
        study = bundled(name)
        for claim in study.claims:
            that, values = claim.that, []
            for side in (that.left, that.right):
                arms = side if isinstance(side, tuple) else (side,)
                printed = [
                    arm
                    if isinstance(arm, float)
                    else study.references.get(arm, {}).get(that.metric)
                    for arm in arms
                ]
                if None not in printed:
                    values.append(printed[0] - sum(printed[1:]))
            if len(values) == 2 and that.readout is None:
                left, right = values[0], values[1] * that.times
                near = math.isclose(left, right, rel_tol=1e-9, abs_tol=that.margin or 0)
                allowed = {
                    "less": left < right,
                    "greater": left > right,
                    "at_least": left > right or near,
                    "at_most": left < right or near,
                    "within": near,
                }
                assert allowed[that.relation], (claim.says, values)
