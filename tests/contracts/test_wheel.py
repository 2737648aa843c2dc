"""Wheel: an installed copy has all data files that commands read, and no tests."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.interpreters import run_python

pytestmark = [pytest.mark.long]

ROOT = Path(__file__).parents[2]
BESIDE = ("sweeps/studies/*.yaml", "reports/pages/*.html",
          "cluster/*.yaml", "cluster/local.sh", "cluster/slurm.sbatch", "cluster/mlflow.service",
          "cluster/*.md")  # fmt: skip


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a wheel built from the tracked files, offline."""
    folder = tmp_path_factory.mktemp("wheel")
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--", *PACKAGES, "pyproject.toml", "setup.py", "README.md",
         "LICENSE"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    for name in filter(None, listed.stdout.split("\0")):
        if name.startswith("reports/published") or not (ROOT / name).is_file():
            continue
        copy = folder / "source" / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes((ROOT / name).read_bytes())
    for arguments in (("init", "-q"), ("add", "."), ("commit", "-q", "-m", "one")):
        _git(folder / "source", *arguments)
    build = ["-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--no-index", "--quiet"]
    subprocess.run(
        [sys.executable, *build, "--wheel-dir", str(folder), str(folder / "source")], check=True
    )
    (built,) = folder.glob("mixsweep-*.whl")
    return built


@pytest.fixture(scope="module")
def names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as packed:
        return set(packed.namelist())


def _git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
    command = ["git", "-C", str(folder), *identity, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


PACKAGES = ("mixsweep", "mixup_core", "sweeps", "reports", "cluster")


def test_a_wheel_contains_every_module_and_data_file(names: set[str]) -> None:
    for package in PACKAGES:
        modules = (ROOT / package).rglob("*.py")
        wanted = {m.relative_to(ROOT).as_posix() for m in modules if m.parent.name != "__pycache__"}
        assert wanted <= names, package
    for pattern in BESIDE:
        wanted = {path.relative_to(ROOT).as_posix() for path in ROOT.glob(pattern)}
        assert wanted, pattern
        assert wanted <= names


def test_a_wheel_has_no_tests_and_no_published_results(names: set[str]) -> None:
    tops = {name.partition("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == set(PACKAGES)
    assert not any(name.startswith("reports/published") for name in names)


def test_an_unpacked_wheel_reports_its_version_and_commit(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(tmp_path)
    program = (
        "import json; from reports.numbers.code_origin import describe_code; "
        "from reports.numbers.provenance import installed_versions; "
        "print(json.dumps([describe_code(), installed_versions()['mixsweep']]))"
    )
    environment = {**os.environ, "PYTHONPATH": ""}
    done = run_python(program, cwd=tmp_path, env=environment, check=True)
    code, version = json.loads(done.stdout)
    source = wheel.parent / "source"
    assert code["commit"] == _git(source, "rev-parse", "HEAD")
    assert code["dirty"] is False
    assert wheel.name.startswith(f"mixsweep-{version}-")
