"""new and check: the files that new writes pass checks and run; exit codes of check."""

import errno
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
import yaml
from click.testing import CliRunner

from mixsweep.cli.new import new
from tests.conftest import CommandLine
from tests.plugin_files import TINY, Write

Line = Callable[..., CommandLine]


@pytest.mark.slow
@pytest.mark.long
def test_files_written_by_init_pass_check_and_plan_unchanged(
    command_line: Line, tmp_path: Path
) -> None:
    mixsweep = command_line()
    folder = tmp_path / "new"
    assert "next   " in mixsweep("new", str(folder)).stdout
    plugin, study = str(folder / "plugin.py"), str(folder / "study.yaml")
    checked = mixsweep("check", plugin).stdout
    assert checked.endswith("the plugin keeps every rule\n")
    assert "operation halves: changing a field changes the keys" in checked
    assert mixsweep.json("plan", study, "--plugin", plugin)["to_run"] == 9
    schema = json.loads(mixsweep("schema", "--plugin", plugin).stdout)
    jsonschema.validate(yaml.safe_load((folder / "study.yaml").read_text()), schema)
    assert sum(file.stat().st_size for file in folder.iterdir() if file.is_file()) < 10_000


def test_init_does_not_replace_an_existing_file(command_line: Line, tmp_path: Path) -> None:
    mixsweep = command_line()
    (tmp_path / "plugin.py").write_text("mine")
    assert "plugin.py: exists already" in mixsweep("new", str(tmp_path), code=2).stderr
    assert [file.name for file in tmp_path.iterdir() if file.suffix] == ["plugin.py"]
    assert (tmp_path / "plugin.py").read_text() == "mine"


def test_a_full_disk_leaves_no_unfinished_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write_bytes(path: Path, content: bytes) -> int:
        path.touch()
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", write_bytes)
    said = CliRunner().invoke(new, [str(tmp_path)])
    assert isinstance(said.exception, OSError)
    assert list(tmp_path.iterdir()) == []


Line = Callable[..., CommandLine]


@pytest.mark.parametrize(
    ("parts", "code", "expected"),
    [
        ((TINY,), 0, "the plugin keeps every rule"),
        ((TINY.replace("nn.GELU(),", "nn.Dropout(0.5),"),), 1, "1 broken rule"),
        pytest.param(
            (TINY, "import torch\n"),
            0,
            "advice  import torch inside functions",
            marks=pytest.mark.long,
        ),
        (("1 / 0",), 2, ""),
    ],
)
def test_the_exit_code_of_check_shows_whether_contracts_hold(
    command_line: Line,
    plugin: Write,
    parts: tuple[str, ...],
    code: int,
    expected: str,
) -> None:
    # A fork has imported torch before: whether the plugin does is seen by an interpreter alone.
    mixsweep = replace(command_line(), server=None) if "advice" in expected else command_line()
    told = mixsweep("check", str(plugin(*parts)), code=code)
    assert expected in told.stdout
    assert ("fails in line 9: ZeroDivisionError" in told.stderr) == (code == 2)
