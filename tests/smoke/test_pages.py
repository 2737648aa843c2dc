"""The pages a user opens, loaded in headless Chromium."""

import re
import shutil
import socket
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import CommandLine

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.skipif(BROWSER is None, reason="NOT CHECKED: no Chromium on this machine"),
]


@pytest.fixture(scope="module")
def finished(command_line: Callable[..., CommandLine]) -> CommandLine:
    mixsweep = command_line()
    mixsweep("run", "digits", "--set", "seeds=1", "--set", "base.epochs=2")
    return mixsweep


@pytest.fixture(scope="module")
def pages(finished: CommandLine) -> Iterator[str]:
    """Return the address of `mixsweep ui` on a finished home."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = finished.start("ui", "--port", str(port))
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(120):
            try:
                urllib.request.urlopen(address, timeout=2).close()
                break
            except OSError:
                time.sleep(0.5)
        yield address
    finally:
        server.terminate()
        server.communicate(timeout=30)


def _seen(address: str, profile: Path, patience_ms: int) -> str:
    """Return the page's document once its scripts have run."""
    assert BROWSER is not None
    quiet = [
        "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
        "--disable-background-networking", "--disable-component-update", "--disable-sync",
    ]  # fmt: skip
    shown = subprocess.run(
        [BROWSER, *quiet, f"--user-data-dir={profile}", f"--virtual-time-budget={patience_ms}",
         "--dump-dom", address],
        capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    return shown.stdout


def test_mlflow_shows_one_run_per_arm(pages: str, tmp_path: Path) -> None:
    page = _seen(f"{pages}/#/experiments/1/runs", tmp_path / "profile", 25_000)
    for shown in ("digits", "erm", "midpoint", "uniform"):
        assert re.search(rf">\s*{shown}\s*<", page), shown


def test_mlflow_answers_this_machine_only(pages: str) -> None:
    port = int(pages.rpartition(":")[2])
    request = urllib.request.Request(pages, headers={"Host": "elsewhere.example"})
    with pytest.raises(OSError, match="403"):
        urllib.request.urlopen(request, timeout=10)
    with socket.socket() as outside, pytest.raises(OSError, match="refused"):
        outside.connect(("127.0.0.2", port))


def test_the_report_shows_its_table_and_figures(finished: CommandLine, tmp_path: Path) -> None:
    file = finished.home / "reports" / "digits" / "report.html"
    page = _seen(file.as_uri(), tmp_path / "profile", 2_000)
    assert "<h1>digits</h1>" in page
    assert page.count("<img") + page.count("<svg") >= 2
    for shown in ("erm", "midpoint", "uniform", "1/1"):
        assert shown in page
