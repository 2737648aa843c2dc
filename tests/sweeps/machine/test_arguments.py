"""Arguments: names on the command line are read as UTF-8."""

import pytest

from sweeps.machine.arguments import read_names_as_utf8


def test_a_process_with_a_non_utf8_locale_restarts_in_utf8_mode(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started: list[tuple[str, list[str], dict[str, str]]] = []
    monkeypatch.setattr("os.execve", lambda *given: started.append(given))
    monkeypatch.setattr("sys.orig_argv", ["python", "-m", "mixsweep", "status"])
    read_names_as_utf8()
    assert started == []
    monkeypatch.setattr("sys.getfilesystemencoding", lambda: "iso8859-1")
    read_names_as_utf8()
    ((program, arguments, environment),) = started
    assert arguments == [program, "-X", "utf8", "-m", "mixsweep", "status"]
    assert environment["PYTHONUTF8"] == "1"
