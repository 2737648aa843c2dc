import dataclasses

import pytest

from mixup_core.images.data.data_config import DataConfig
from mixup_core.images.sufficiency import SufficiencyConfig, infeasible
from mixup_core.laws import Erm
from mixup_core.rules import RuleError

CONFIG = SufficiencyConfig(data=DataConfig(name="digits", num_train=60))


def test_invalid_sufficiency_configurations_are_refused() -> None:
    with pytest.raises(RuleError, match="a law that mixes"):
        dataclasses.replace(CONFIG, law=Erm())
    with pytest.raises(RuleError, match=r"data\.views must be single"):
        SufficiencyConfig(data=DataConfig(views="concat"))
    many = SufficiencyConfig(data=DataConfig(name="digits", num_train=2000))
    assert "num_train must be at most" in str(next(infeasible(many)))
    assert list(infeasible(CONFIG)) == []
