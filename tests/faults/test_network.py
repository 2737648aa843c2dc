"""Network: even with hostile environment variables, only the loopback is listened on."""

import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.conftest import CommandLines
from tests.faults.exposure import (
    ROUTABLE,
    Watch,
    hostile,
    open_folders,
    routable_interface,
)
from tests.faults.launches import Launch, Task, lasting

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300, func_only=True)]

LINE = Task(
    str(Path(__file__).with_name("line.yaml")), ("seeds=1", "base.epochs=400", "base.hidden=1024")
)


@pytest.fixture(scope="module", autouse=True)
def routable() -> Iterator[None]:
    """Give this network namespace an interface through which packets of others could arrive."""
    with routable_interface():
        yield


HOSTILE: Mapping[str, dict[str, str]] = {
    "an empty address": {"RAY_ADDRESS": ""},
    "a local address": {"RAY_ADDRESS": "local"},
    "every variable 0": {**hostile("0"), "RAY_ADDRESS": ""},
    "every variable 1": {**hostile("1"), "RAY_ADDRESS": "local"},
    "every variable an address": hostile("0.0.0.0"),
    "a Redis elsewhere": {"RAY_REDIS_ADDRESS": f"{ROUTABLE}:6379"},
}


ALONE = {"an empty address", "a local address"}
"""Addresses that `make test` sets only beside all the other variables."""


@pytest.mark.parametrize(
    "variables",
    [
        pytest.param(variables, id=name, marks=[pytest.mark.long] if name in ALONE else [])
        for name, variables in HOSTILE.items()
    ],
)
def test_a_launch_listens_on_the_loopback_only_and_opens_no_folder_to_others(
    command_line: CommandLines, tmp_path: Path, variables: dict[str, str]
) -> None:
    place = Path(os.environ["TMPDIR"]) / "n"
    place.mkdir()
    others = open_folders(place)
    mixsweep = command_line(tmp_path / "runs", TMPDIR=str(place), **variables)
    try:
        with Watch() as watch, Launch(mixsweep, LINE, slots=1) as launch:
            launch.stage(LINE.study.runs()[0])
            launch.end(0)
        assert watch.listening, "nothing was seen of the cluster"
        assert watch.reachable == set()
        assert lasting(lambda: open_folders(place) - others) == set()
    finally:
        shutil.rmtree(place)
