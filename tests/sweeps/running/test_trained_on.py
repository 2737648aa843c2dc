"""TrainedOn: facts about the machine that trains a run."""

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from mixup_core.config.building import with_values
from sweeps.reading.study_file import load_study
from sweeps.running import trained_on

PROPRIETARY = "NVIDIA UNIX x86_64 Kernel Module  535.54.03  Tue Jun  6 22:20:39 UTC 2023"
OPEN = "NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  (root@builder)"


@pytest.mark.parametrize(
    ("described", "version"),
    [(PROPRIETARY, "535.54.03"), (OPEN, "580.159.04"), ("NVIDIA something else", "")],
)
def test_the_driver_version_is_read_from_both_kernel_modules(
    monkeypatch: pytest.MonkeyPatch, described: str, version: str
) -> None:
    text = f"NVRM version: {described}\nGCC version:  gcc version 12.2.0 (Debian 12.2.0-14)\n"
    monkeypatch.setattr(Path, "read_text", lambda path: text)
    assert trained_on._gpu_driver() == version


@pytest.mark.parametrize(
    ("study", "values", "packages"),
    [
        ("gaussian-features", {}, {"scipy"}),
        ("digits", {}, {"scipy", "torchvision", "pillow"}),
        (
            "digits",
            {"model": {"name": "timm", "architecture": "resnet18"}},
            {"scipy", "torchvision", "pillow", "timm"},
        ),
    ],
)
def test_a_record_has_the_versions_of_the_packages_that_the_run_uses(
    study: str, values: dict[str, Any], packages: set[str]
) -> None:
    config = with_values(load_study(study).runs()[0].config, values)
    found = trained_on.environment_of("cpu", config)
    optional = {"scipy", "torchvision", "pillow", "timm"}
    recorded = {name: value for name, value in found.items() if name in optional}
    assert recorded == {package: version(package) for package in packages}


def test_recording_versions_imports_no_package() -> None:
    program = (
        "import sys\n"
        "from sweeps.reading.study_file import load_study\n"
        "from sweeps.running.trained_on import environment_of\n"
        "environment_of('cpu', load_study('digits').runs()[0].config)\n"
        "print(sorted({'PIL', 'scipy', 'timm', 'torchvision'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], stdout=-1, check=True, text=True)
    assert done.stdout.strip() == "[]"
