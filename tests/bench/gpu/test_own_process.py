"""Own process: results, errors, imports, and the end of a function whose caller ends."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.bench.gpu.own_process import in_own_process

ROOT = Path(__file__).parents[3]
CALLER = """\
import time
from pathlib import Path
from tests.bench.gpu.own_process import in_own_process

def slow(folder):
    try:
        Path(folder, "begun").touch()
        time.sleep(600)
    finally:
        Path(folder, "cleaned").touch()

if __name__ == "__main__":
    import signal, sys
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    in_own_process(slow, sys.argv[1])
"""


def _fails(text: str) -> dict[str, object]:
    raise ValueError(text)


def _ends() -> dict[str, object]:
    os._exit(7)


def _named(name: str) -> dict[str, object]:
    return {"pid": os.getpid(), name: 1}


def test_a_function_returns_its_result_from_a_new_process() -> None:
    found = in_own_process(_named, "one")
    assert found.pop("pid") != os.getpid()
    assert found == {"one": 1}


def test_an_error_is_returned_in_one_line() -> None:
    assert in_own_process(_fails, "first\nsecond") == {"failed": "ValueError: first"}


def test_a_process_that_ends_without_a_result_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="_ends ended with exit code 7"):
        in_own_process(_ends)


def test_files_of_the_working_directory_are_not_imported(tmp_path: Path) -> None:
    program = CALLER.replace("time.sleep(600)", "return {}")
    (tmp_path / "caller.py").write_text(program)
    place = tmp_path / "place"
    place.mkdir()
    for name in ("pickle", "random", "socket", "struct", "sklearn"):
        (place / f"{name}.py").write_text("raise ImportError('a file of the working directory')\n")
    done = subprocess.run(
        [sys.executable, tmp_path / "caller.py", tmp_path],
        cwd=place, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "cleaned").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_the_function_is_interrupted_and_cleans_up_when_its_caller_ends(
    number: signal.Signals, tmp_path: Path
) -> None:
    (tmp_path / "caller.py").write_text(CALLER)
    caller = subprocess.Popen(
        [sys.executable, tmp_path / "caller.py", tmp_path],
        env={**os.environ, "PYTHONPATH": str(ROOT)}, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    until = time.monotonic() + 60
    while not (tmp_path / "begun").exists():
        assert time.monotonic() < until
        time.sleep(0.05)
    below = psutil.Process(caller.pid).children(recursive=True)
    caller.send_signal(number)
    try:
        caller.wait(30)
        _, alive = psutil.wait_procs(below, 30)
        assert alive == []
    finally:
        caller.kill()
        for process in filter(psutil.Process.is_running, below):
            process.kill()
    assert (tmp_path / "cleaned").exists()
