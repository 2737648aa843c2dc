"""Two simultaneous launches of studies that share runs and first epochs train each run once."""

from pathlib import Path

import pytest

from tests.conftest import CommandLines
from tests.soak.epochs_log import EpochsLog
from tests.soak.twice import STUDY

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300, func_only=True)]

SWITCHES = {"one": [0, 4, 8], "other": [0, 6, 10]}
DISTINCT = 2 * (12 + 10 + 8 + 6 + 4 + 2)
"""Number of different epochs at two seeds: without mixup, with mixup, and after each of four
switches.
"""


def test_two_launches_on_ray_train_each_shared_run_once(
    tmp_path: Path, command_line: CommandLines
) -> None:
    log, launches = EpochsLog(folder=tmp_path), []
    for name, switches in SWITCHES.items():
        file = tmp_path / f"{name}.yaml"
        file.write_text(STUDY.format(name=name, epochs=12, switches=switches, seeds=2))
        mixsweep = command_line(MIXSWEEP_STORE=str(tmp_path / "store"), **log.variables(name, 0.1))
        launches.append(mixsweep.start("run", str(file), "--slots", "2"))
    for launch in launches:
        out, err = launch.communicate(timeout=240)
        assert launch.returncode == 0, f"{out}\n{err}"
    counted = log.count()
    assert counted.twice == ()
    assert counted.distinct == DISTINCT
    assert counted.trained < 2 * 2 * 3 * 12, "no run starts from a state of the other launch"
    assert set(counted.by_launch) == set(SWITCHES)
