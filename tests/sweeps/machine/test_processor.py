import platform
import shutil
import subprocess
from pathlib import Path

import pytest

from sweeps.machine.processor import processor


@pytest.mark.skipif(shutil.which("lscpu") is None, reason="NOT CHECKED: no lscpu here")
def test_it_is_the_name_that_the_system_shows() -> None:
    shown = subprocess.run(
        ["lscpu"],
        capture_output=True,
        text=True,
        check=True,
        env={"LC_ALL": "C", "PATH": "/usr/bin"},
    ).stdout
    assert f"Model name: {processor()}" in " ".join(shown.split())


def test_without_a_name_it_is_the_architecture(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "read_text", lambda path: "processor : 0\n")
    assert processor() == platform.machine()
