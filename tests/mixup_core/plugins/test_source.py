"""Source: a plugin file is read once, and its hash changes with everything that affects results."""

import hashlib
import sys
from pathlib import Path

import pytest

from mixup_core.plugins.source import PluginError, package_digest, read_source


def test_a_leading_tilde_is_the_home_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "own.py").write_text("x = 1\n")
    assert read_source("~/own.py") == read_source(tmp_path / "own.py")


def test_read_source_keeps_the_bytes_of_a_file_and_their_digest(tmp_path: Path) -> None:
    file = tmp_path / "tiny.py"
    file.write_bytes(b"x = 1\n")
    source = read_source(file)
    file.write_bytes(b"x = 2\n")
    assert source.content == b"x = 1\n"
    assert source.digest == hashlib.sha256(b"x = 1\n").hexdigest() != read_source(file).digest
    assert (source.name, source.place, source.version) == ("tiny.py", str(file), "")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("absent.py", "cannot read the file: no such file or directory"),
        ("folder.py", "cannot read the file: is no file"),
        ("notes.txt", "expected a Python file, whose name ends in .py"),
        ("large.py", "the file must have at most 1,000,000 bytes"),
    ],
)
def test_a_file_that_is_not_a_plugin_is_refused_by_name(
    tmp_path: Path, name: str, message: str
) -> None:
    (tmp_path / "folder.py").mkdir()
    (tmp_path / "large.py").write_bytes(b"#" * 1_000_001)
    with pytest.raises(PluginError, match=f"plugin .*{name}: {message}"):
        read_source(tmp_path / name)


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "extra"
    (folder / "deep").mkdir(parents=True)
    (folder / "__init__.py").write_text("")
    (folder / "deep" / "net.py").write_text("x = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    return folder


def test_the_digest_of_a_package_covers_every_file_except_caches(package: Path) -> None:
    before = package_digest("extra", "extra")
    (package / "__pycache__").mkdir()
    (package / "__pycache__" / "net.cpython-311.pyc").write_bytes(b"1")
    (package / "deep" / "net.py").write_bytes(b"x = 1\r\n")
    assert package_digest("extra", "extra") == before, "line ends count as LF"
    (package / "table.csv").write_text("1")
    with_table = package_digest("extra", "extra")
    (package / "table.csv").rename(package / "other.csv")
    assert len({before, with_table, package_digest("extra", "extra")}) == 3
    assert "extra" not in sys.modules, "nothing of it was run"


def test_a_package_that_is_absent_or_has_no_init_is_refused(package: Path) -> None:
    with pytest.raises(PluginError, match="plugin mine: the package extras is not installed on "):
        package_digest("extras", "mine")
    (package / "__init__.py").unlink()
    with pytest.raises(PluginError, match=r"extra has no __init__\.py"):
        package_digest("extra", "mine")
