"""Imports: workers import the installed package; modules in the working directory are not run."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

_STUDY = Path(__file__).parents[1] / "faults" / "closed-form.yaml"
_DECOYS = ("sklearn", "pandas", "scipy", "statistics", "plugins", "torchvision", "fsspec")
_START = "import sys; from mixsweep.cli import main as cli; cli.main()"


@pytest.mark.slow
def test_no_process_of_a_launch_imports_a_file_of_the_working_directory(tmp_path: Path) -> None:
    work, imported = tmp_path / "work", tmp_path / "imported"
    work.mkdir()
    for name in _DECOYS:
        text = f"open({str(imported)!r}, 'a').write('{name}\\n'); raise ImportError('a decoy')"
        (work / f"{name}.py").write_text(text)
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("RAY_", "MLFLOW_", "MIX"))}
    done = subprocess.run(
        # -P: as the installed command, whose own folder is first on the path.
        [sys.executable, "-P", "-c", _START, "run", str(_STUDY), "--set", "seeds=1"],
        env={**kept, "PYTHONPATH": str(_STUDY.parents[2]), "MIXSWEEP_HOME": str(tmp_path / "runs")},
        capture_output=True, text=True, check=False, cwd=work,
    )  # fmt: skip
    assert not imported.exists(), imported.read_text()
    assert done.returncode == 0, done.stderr
