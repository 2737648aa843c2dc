"""The example package as pip installs it: its own tests, the plugin contracts, and a study."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.conftest import CommandLines

PACKAGE = Path(__file__).parents[2] / "examples" / "plugin_package"


@pytest.fixture
def installed(tmp_path: Path) -> str:
    """Write the metadata that pip would write; return the search path for package and metadata."""
    project = tomllib.loads((PACKAGE / "pyproject.toml").read_text())["project"]
    about = tmp_path / "mixsweep_example-1.0.dist-info"
    about.mkdir()
    head = f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    (about / "METADATA").write_text(head)
    entries = project["entry-points"]["mixsweep"]
    lines = [f"{name} = {value}" for name, value in entries.items()]
    (about / "entry_points.txt").write_text("\n".join(["[mixsweep]", *lines, ""]))
    own = str(Path(__file__).parents[2])
    return os.pathsep.join([str(tmp_path), str(PACKAGE), own])


@pytest.mark.long
def test_the_tests_of_the_example_package_pass(installed: str) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(PACKAGE)]
    environment = os.environ | {"PYTHONPATH": installed, "PYTHONDONTWRITEBYTECODE": "1"}
    ran = subprocess.run(
        [*command, "-c", os.devnull], env=environment, capture_output=True, text=True, timeout=120
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_the_example_package_passes_the_plugin_checks(
    installed: str, command_line: CommandLines
) -> None:
    mixsweep = command_line(PYTHONPATH=installed)
    checked = mixsweep("check", "mixsweep-example").stdout
    assert checked.endswith("the plugin keeps every rule\n")
    assert {line.split(":")[0].split("  ")[-1].strip() for line in checked.splitlines()} >= {
        "law triangular", "operation stripes", "model two-layer-norm", "probe confidence",
        "dataset gratings",
    }  # fmt: skip


@pytest.mark.long
def test_the_example_study_trains_without_the_plugin_option(
    installed: str, command_line: CommandLines
) -> None:
    mixsweep, study = command_line(PYTHONPATH=installed), str(PACKAGE / "study.yaml")
    ran = mixsweep("run", study, "--engine", "inline")
    assert ran.stdout.count("2/2") == 3
    assert b'"version": "1.0"' in mixsweep.report("gratings", "provenance.json")
    without = command_line()
    refused = without("plan", study, code=2).stderr
    assert "expected one of" in refused
    assert "; if a plugin defines this dataset, add --plugin FILE\n" in refused
    assert "mixsweep-example" not in without("plan", "digits").stdout
