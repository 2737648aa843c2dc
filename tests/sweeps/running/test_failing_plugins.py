"""A plugin run that fails, or draws from a global generator, fails with one message."""

import logging
from pathlib import Path
from typing import Any

import pytest

from mixup_core.config.building import built
from mixup_core.images.config import TrainConfig
from mixup_core.plugins.loading import use
from sweeps.running.assignment import Assignment
from sweeps.running.attempt import Driver, attempt
from tests.plugin_files import DOTS, TINY, Write

DRAW = TINY.replace("nn.GELU(),", "nn.GELU(), {},")
RAISES = TINY.replace("from torch import nn", "from torch import nn; raise ValueError('boom')")


def _failure(plugin: Path, store: Path) -> dict[str, Any]:
    use(plugin)
    values = {"data.name": "dots", "model.name": "tiny", "epochs": 2, "batch_size": 50}
    assignment = Assignment(
        config=built(TrainConfig, values), keep=frozenset(), keep_final_state=False,
        store=str(store), teacher=None, data_root=str(store), on_gpu=False,
    )  # fmt: skip
    last = attempt(assignment, Driver(lambda report: None), {"node": "", "gpus": ""})
    assert last["epochs"] == 0, "an epoch was reported"
    failure: dict[str, Any] = last["failure"]
    return failure


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (
            (RAISES, DOTS),
            "plugin tiny.py: fails in line 18 (network): ValueError: boom; correct",
        ),
        (
            (RAISES.replace("ValueError('boom')", "SystemExit(3)"), DOTS),
            "plugin tiny.py: fails in line 18 (network): SystemExit: 3; correct",
        ),
        (
            (TINY.replace("size =", "np.random.rand(); size ="), DOTS),
            "plugin tiny.py: a run that uses this plugin drew from the global random generator of "
            "numpy.random",
        ),
        (
            (TINY.replace("nn.Linear(self.width", "nn.Linear(3 + self.width"), DOTS),
            "plugin tiny.py: a run that uses it fails in linear.py line ",
        ),
        (
            (DRAW.format("nn.Dropout(0.5)"), DOTS),
            "plugin tiny.py: a run that uses this plugin drew from the global random generator of "
            "torch, so that",
        ),
        (
            (TINY, DOTS.replace("default_rng(0 if", "default_rng(np.random.randint(99) if")),
            "DataError: plugin tiny.py: reading the dataset dots draws from the global generator",
        ),
        (
            (TINY, DOTS.replace("rng = np", "1 / 0\n    rng = np")),
            "plugin tiny.py: fails in line 26 (read): ZeroDivisionError: division by zero; correct",
        ),
    ],
)
def test_the_message_names_the_plugin_and_no_traceback_is_logged(
    plugin: Write,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    code: tuple[str, ...],
    message: str,
) -> None:
    with caplog.at_level(logging.WARNING):
        failure = _failure(plugin(*code), tmp_path / "store")
    assert failure["kind"] == "failed"
    assert failure["message"].startswith(message)
    assert not caplog.records


def test_results_that_cannot_be_repeated_are_not_stored(plugin: Write, tmp_path: Path) -> None:
    _failure(plugin(DRAW.format("nn.Dropout(0.5)"), DOTS), tmp_path / "store")
    assert not list((tmp_path / "store").rglob("*.json"))
