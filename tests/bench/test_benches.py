"""`make bench` runs all benches; if one fails, the others still run."""

import subprocess
from pathlib import Path

import pytest

from tests.bench import __main__ as benches


def test_every_bench_that_publishes_results_is_in_the_list_to_run() -> None:
    publishing = {
        file.stem
        for file in Path(__file__).parent.glob("*.py")
        if 'kind="bench' in file.read_text() and file != Path(__file__)
    }
    assert publishing == set(benches.LEAST)


def test_a_bench_that_fails_stops_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = []

    def ran(command: list[str], check: bool) -> "subprocess.CompletedProcess[bytes]":
        asked.append(command[2:])
        return subprocess.CompletedProcess(command, int(command[2] == "tests.bench.scale"))

    monkeypatch.setattr(subprocess, "run", ran)
    assert benches.main(["scale", "growth", "--quick", "--out", str(tmp_path)]) == 1
    own = [(f"tests.bench.{name}", *benches.LEAST[name]) for name in ("scale", "growth")]
    assert asked == [[*command, "--out", str(tmp_path)] for command in own]
    assert "1 of 2 benches finished" in capsys.readouterr().out


def test_a_bench_that_does_not_exist_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        benches.main(["speed"])
    assert "no such bench: speed" in capsys.readouterr().err
