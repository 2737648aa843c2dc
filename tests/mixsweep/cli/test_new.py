"""new and check: the files that new writes pass checks and run; exit codes of check."""

import errno
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from mixsweep.cli.new import new
from tests.conftest import CommandLines
from tests.plugin_files import TINY, Write


def test_init_does_not_replace_an_existing_file(command_line: CommandLines, tmp_path: Path) -> None:
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
    command_line: CommandLines, plugin: Write, parts: tuple[str, ...], code: int, expected: str
) -> None:
    # A fork has imported torch before: whether the plugin does is seen by an interpreter alone.
    mixsweep = replace(command_line(), server=None) if "advice" in expected else command_line()
    told = mixsweep("check", str(plugin(*parts)), code=code)
    assert expected in told.stdout
    assert ("fails in line 9: ZeroDivisionError" in told.stderr) == (code == 2)
