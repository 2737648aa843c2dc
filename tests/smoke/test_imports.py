"""Imports: workers import the installed package; modules in the working directory are not run."""

from pathlib import Path

import pytest

from tests.conftest import CommandLine

_STUDY = Path(__file__).parents[1] / "faults" / "closed-form.yaml"
_DECOYS = ("sklearn", "pandas", "scipy", "statistics", "plugins", "torchvision", "fsspec")


@pytest.mark.slow
def test_no_process_of_a_launch_imports_a_file_of_the_working_directory(tmp_path: Path) -> None:
    work, imported = tmp_path / "work", tmp_path / "imported"
    work.mkdir()
    for name in _DECOYS:
        text = f"open({str(imported)!r}, 'a').write('{name}\\n'); raise ImportError('a decoy')"
        (work / f"{name}.py").write_text(text)
    # The folder of an installed command is first on the path, and not the working directory.
    extra = {"PYTHONSAFEPATH": "1", "PYTHONPATH": str(_STUDY.parents[2])}
    mixsweep = CommandLine(
        home=tmp_path / "runs", data=tmp_path / "data", extra=extra,
        prefix=("env", "--chdir", str(work)),
    )  # fmt: skip
    mixsweep("run", str(_STUDY), "--set", "seeds=1")
    assert not imported.exists(), imported.read_text()
