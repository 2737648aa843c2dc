"""Tests of whole clusters (`make clusters`), whose hosts are Linux namespaces."""

import os
import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.faults.namespaces import is_in_namespace
from tests.hosts.host import build_bridge
from tests.soak.findings import MEASUREMENTS, publish

FIRST_USE = MEASUREMENTS / "first-use"


Record = Callable[..., None]
"""Function that prints and keeps the measurements of a test; see `record`."""


@pytest.fixture(scope="session", autouse=True)
def namespace(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Fail unless the test runs in namespaces, which end with the tests."""
    if not is_in_namespace():
        pytest.skip("clusters are started in namespaces of their own only: make clusters")
    missing = [name for name in ("ip", "nsenter", "rsync") if shutil.which(name) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}; NO CLUSTER WAS STARTED")
    build_bridge(tmp_path_factory.mktemp("bridge") / "ray")


@pytest.fixture
def hosts(tmp_path: Path) -> Path:
    """Return the folder of the hosts of a test; the hosts end with the test."""
    folder = tmp_path / "hosts"
    folder.mkdir()
    return folder


@pytest.fixture
def record(capsys: pytest.CaptureFixture[str]) -> Record:
    """Return a function that prints measurements, and publishes them in `make clusters`.

    It takes a name, a title, the measurements and perhaps the log of a first use. The seconds since
    the fixtures of the test were ready are one of the measurements.
    """
    began = time.monotonic()

    def keep(name: str, title: str, figures: Mapping[str, Any], log: str | None = None) -> None:
        figures = {**figures, "seconds in all": round(time.monotonic() - began, 1)}
        with capsys.disabled():
            print(f"\n{name}: {title}", *map("  {0[0]}: {0[1]}".format, figures.items()), sep="\n")  # noqa: T201
        if os.environ.get("PUBLISH"):
            publish(name, title, figures, kind="clusters")
            if log is not None:
                FIRST_USE.mkdir(exist_ok=True)
                (FIRST_USE / f"{name}.txt").write_text(log, encoding="utf-8")

    return keep
