"""Command line: errors give one message and exit code 2; nothing is created or imported."""

import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from mixsweep.cli.main import BAD_INPUT, MOVED, commands, main, spell_usage
from sweeps.machine.terminal_text import wrapped
from tests.interpreters import run_python

BAD = (
    "run", "rum digits", "run quikstart", "run digits --slot 2", "run digits --slots 0",
    "run digits --fast", "run digits --address cluster", "run digits --address 127.0.0.1:1",
    "run digits --set base.optimizer.lrr=1", "run table1-cifar10", "run a\x1b[2Jb",
    "run digits --store memory://store", "run digits --gpus-per-run 1",
    "run digits --engine inline --address h:1", "run digits --engine inline --gpus-per-run 0.5",
    "plan .", "plan digits --price x",
    "plan digits --price nan", "plan digits --price -1", "plan digits --gpus-per-run inf",
    "plan digits --set x",
    "plan digits --set base.epochs=three", "plan digits --set base.mix.operation=cutmx",
    "plan digits --set base.probes=[x]", "plan digits --set base.model.hidden=[1e30]",
    "plan digits --plugin none.py", "status digits none", "status digits erm 9",
    "status digits --set epochs", f"status digits --store {__file__}", "status a\x1b[2Jb \x1b[2J",
    "report", "report digits", "report digits --metric x", "report digits --arms a b",
    "studies nonesuch", "data fetch mnist1d", "data check /nonesuch", "data list",
    "share digits", "share nonesuch", "share digits --out a\x1b[2Jb", "add none.zip",
    "add a\x1b[2Jb", "report --out a\x1b[2Jb", "check none.py", "store prune", "submit digits",
    "sync digits", "ui", "stop ../digits", "stop a\x1b[2Jb", "publish", "why digits",
)  # fmt: skip
"""Command lines that are refused before anything is trained."""


@pytest.fixture
def refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., str]:
    """Return a function that gives the message of a command line that is refused."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")

    def message(*arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", ["mixsweep", *arguments])
        with pytest.raises(SystemExit) as left:
            main()
        said = capsys.readouterr()
        assert (left.value.code, said.out) == (BAD_INPUT, "")
        return said.err

    return message


@pytest.mark.parametrize("name", [*MOVED, "data list"])
def test_a_moved_command_names_the_present_command_with_any_options(
    name: str, refused: Callable[..., str]
) -> None:
    said = refused(*name.split(), "digits", "--home", "x", "--plugin=x.py", "-h")
    assert said.startswith("now: mixsweep ")
    assert said.split()[2] in commands.commands


@pytest.mark.parametrize("line", BAD)
def test_bad_input_is_reported_in_one_message_with_exit_code_2(
    line: str, tmp_path: Path, refused: Callable[..., str]
) -> None:
    said = refused(*line.split())
    lines = [part for line in said.splitlines() for part in wrapped(line, 100).splitlines()]
    assert 0 < len(lines) < 6
    assert not said.startswith(("Usage", "Traceback"))
    assert "\x1b" not in said
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("is_cut", "said"), [(False, "said, ended"), (True, "said")])
def test_a_launch_waits_for_its_threads_unless_interrupted(is_cut: bool, said: str) -> None:
    program = f"""
    import threading, time
    from mixsweep.cli.main import _end
    from mixsweep.cli.ending import Ending

    def end() -> None:
        time.sleep(0.5)
        print(", ended", end="")

    threading.Thread(target=end).start()
    print("said", end="")
    _end(Ending(has_trained=True), 1, is_cut={is_cut})
    """
    ran = run_python(program)
    assert (ran.returncode, ran.stdout, ran.stderr) == (1, said, "")


def test_a_command_spares_the_processes_that_ran_before_it(
    refused: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    spared: list[bool] = []
    monkeypatch.setattr("mixsweep.cli.main.spare_children", lambda: spared.append(True))
    refused("rum", "digits")
    assert spared == [True]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["run", "digits", "--slot", "2"], "has no option --slot (did you mean --slots?); "),
        (["run", "digits", "--seeds", "3"], "; --set PATH=VALUE changes a key of the study file; "),
        (["run", "digits", "--arms", "erm"], "has no option --arms; `mixsweep report` has this"),
        (["report", "digits", "--arms", "erm"], "see `mixsweep report --help`"),
    ],
    ids=str,
)
def test_a_wrong_option_names_the_nearest_one_and_the_help_that_lists_all(
    words: list[str], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mixsweep.cli.main.program", lambda: "mixsweep")
    said = CliRunner().invoke(commands, words, standalone_mode=False, prog_name="mixsweep")
    assert isinstance(said.exception, click.UsageError)
    assert says in spell_usage(said.exception)
    assert f"`mixsweep {words[0]} --help`" in spell_usage(said.exception)
