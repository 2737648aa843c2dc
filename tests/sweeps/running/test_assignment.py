"""Assignment: a run is sent to a worker as plain values, with the source of its plugins."""

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
from tests.plugin_files import DOTS, MARGIN, TINY, Write

OPEN = """
import pickle, sys
from mixup_core.keys import run_key
sent = pickle.load(sys.stdin.buffer)
print(run_key(sent.open().config))
"""


def _assignment(**values: Any) -> Assignment:
    config = built(TrainConfig, {"epochs": 2, "batch_size": 50} | values)
    return Assignment(
        config=config,
        keep=frozenset({1}),
        keep_final_state=True,
        store="there",
        teacher=built(TrainConfig, {"epochs": 1, "batch_size": 7}),
    )


def test_an_assignment_that_was_sent_and_opened_equals_the_original() -> None:
    assignment = _assignment(**{"mix.law": {"beta": 0.3}, "optimizer": {"name": "sgd", "lr": 1}})
    sent = pickle.loads(pickle.dumps(assignment))
    assert pickle.loads(pickle.dumps(sent)).open() == assignment, "sent on before it is opened"
    assert sent.packed[0] == ()
    assert "Assignment" in str(sent), "Tune names trials by their parameters"
    assert assignment.open() is assignment


def test_another_process_opens_an_assignment_without_the_plugin_file(
    plugin: Write, tmp_path: Path
) -> None:
    file = plugin(TINY, MARGIN, DOTS)
    use(file)
    assignment = _assignment(
        **{"model.name": "tiny", "model.width": 3, "probes": ["margin"], "data.name": "dots"}
    )
    content = pickle.dumps(assignment)
    file.unlink()
    found = subprocess.run(
        [sys.executable, "-c", OPEN], input=content, capture_output=True, check=True, timeout=60
    )
    assert found.stdout.decode().strip() == run_key(assignment.config)
