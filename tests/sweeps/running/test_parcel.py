"""Parcel: a run is sent to a worker as plain values, with the source of its plugins."""

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

from mixup_core.config.building import built
from mixup_core.images.config import TrainConfig
from mixup_core.keys import run_key
from mixup_core.plugins.loading import use
from sweeps.running.assignment import Assignment
from sweeps.running.parcel import Parcel
from tests.plugin_files import DOTS, MARGIN, TINY, Write

OPEN = """
import pickle, sys
from mixup_core.keys import run_key
parcel = pickle.load(sys.stdin.buffer)
print(run_key(parcel.open().config))
"""


def _assignment(**values: Any) -> Assignment:
    config = built(TrainConfig, {"epochs": 2, "batch_size": 50} | values)
    return Assignment(
        config=config, keep=frozenset({1}), keep_final_state=True, store="there",
        teacher=built(TrainConfig, {"epochs": 1, "batch_size": 7}), data_root=None, on_gpu=False,
    )  # fmt: skip


def test_an_opened_parcel_equals_the_assignment() -> None:
    assignment = _assignment(**{"mix.law": {"beta": 0.3}, "optimizer": {"name": "sgd", "lr": 1}})
    parcel = Parcel.of(assignment)
    assert pickle.loads(pickle.dumps(parcel)).open() == assignment
    assert parcel.plugins == ()


def test_another_process_opens_a_parcel_without_the_plugin_file(
    plugin: Write, tmp_path: Path
) -> None:
    file = plugin(TINY, MARGIN, DOTS)
    use(file)
    assignment = _assignment(
        **{"model.name": "tiny", "model.width": 3, "probes": ["margin"], "data.name": "dots"}
    )
    content = pickle.dumps(Parcel.of(assignment))
    file.unlink()
    found = subprocess.run(
        [sys.executable, "-c", OPEN], input=content, capture_output=True, check=True, timeout=60
    )
    assert found.stdout.decode().strip() == run_key(assignment.config)


def test_a_plugin_is_sent_only_with_assignments_that_need_the_plugin(plugin: Write) -> None:
    use(plugin(TINY))
    sent = [Parcel.of(_assignment(**values)).plugins for values in ({"model.name": "tiny"}, {})]
    assert [[source.name for source in plugins] for plugins in sent] == [["tiny.py"], []]
