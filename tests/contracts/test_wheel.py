"""What an installed copy holds: everything that a command reads beside the code, and no test."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BESIDE = ("mixup_core/images/*.c", "sweeps/studies/*.yaml", "reports/*.html", "cluster/*.yaml",
          "cluster/local.sh", "cluster/slurm.sbatch", "cluster/mlflow.service",
          "cluster/*.md")  # fmt: skip


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """Return the files of a wheel that is built from the tracked files, here and offline."""
    folder = tmp_path_factory.mktemp("wheel")
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--", *PACKAGES, "pyproject.toml", "README.md", "LICENSE"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    for name in filter(None, listed.stdout.split("\0")):
        if name.startswith("reports/published") or not (ROOT / name).is_file():
            continue
        copy = folder / "source" / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes((ROOT / name).read_bytes())
    build = ["-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--no-index", "--quiet"]
    subprocess.run(
        [sys.executable, *build, "--wheel-dir", str(folder), str(folder / "source")], check=True
    )
    (wheel,) = folder.glob("mixsweep-*.whl")
    with zipfile.ZipFile(wheel) as packed:
        return set(packed.namelist())


PACKAGES = ("mixsweep", "mixup_core", "sweeps", "reports", "cluster")


def test_a_wheel_has_every_module_and_what_commands_read(names: set[str]) -> None:
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
