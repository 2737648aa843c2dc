"""Holm's adjusted p values."""

import numpy as np
import pytest
import scipy.stats

from reports.numbers.holm import holm


def test_holm_gives_the_adjusted_p_values_of_known_examples() -> None:
    assert holm([0.04, 0.01, 0.03]) == pytest.approx((0.06, 0.03, 0.06))
    assert holm([0.9, 0.8]) == (1.0, 1.0)
    assert holm([0.02]) == (0.02,)
    assert holm([]) == ()


def test_holm_rejects_the_same_hypotheses_as_the_step_down_rule() -> None:
    rng = np.random.default_rng(4)
    for ps in rng.uniform(0, 0.1, size=(300, 4)):
        rejected = set()
        for step, place in enumerate(np.argsort(ps)):
            if ps[place] > 0.05 / (4 - step):
                break
            rejected.add(int(place))
        assert {place for place, p in enumerate(holm(list(ps))) if p <= 0.05} == rejected


def test_holm_keeps_the_family_wise_error_at_five_percent() -> None:
    rng = np.random.default_rng(5)
    draws = rng.normal(size=(20_000, 4, 5))
    ps = scipy.stats.ttest_rel(draws[:, 1:], draws[:, :1], axis=2).pvalue
    some_rejection = np.mean([min(holm(list(family))) <= 0.05 for family in ps])
    assert 0.02 < some_rejection <= 0.05
