import pytest

from mixup_core.images.config import TrainConfig
from mixup_core.images.data.catalog import CATALOG
from mixup_core.tree import with_values
from sweeps.reading.feasibility import infeasible

DIGITS = CATALOG["digits"]
BASE = with_values(TrainConfig(epochs=1, batch_size=8), {"data.name": "digits"})


@pytest.mark.parametrize(
    ("values", "path"),
    [
        ({"data.num_train": 8}, None),
        ({"data.num_train": 7}, "batch_size"),
        ({"data.num_train": 17}, "batch_size"),
        ({"data.num_train": 17, "model.name": "mlp"}, None),
        ({"batch_size": 1}, "batch_size"),
        ({"batch_size": 1, "model.name": "mlp"}, None),
        ({"data.val_size": 1436, "batch_size": 1, "model.name": "mlp"}, None),
        ({"data.val_size": 1437}, "data.val_size"),
        ({"data.val_size": 437, "data.num_train": 1000}, None),
        ({"data.val_size": 438, "data.num_train": 1000}, "data.num_train"),
        ({"data.pool": 8}, None),
        ({"data.pool": 3}, "data.pool"),
        ({"data.pool": 16}, "data.pool"),
        ({"epochs": 10_000}, None),
        ({"epochs": 10_001}, "epochs"),
    ],
)
def test_each_limit_holds_up_to_its_last_legal_value(
    values: dict[str, object], path: str | None
) -> None:
    faults = list(infeasible(with_values(BASE, values), DIGITS))
    assert [fault.paths[0] for fault in faults] == ([] if path is None else [path])
