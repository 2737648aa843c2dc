"""Options of several commands: every path on the command line may begin with `~`."""

from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from mixsweep.cli.main import commands


def paths_of(command: click.Command) -> Iterator[tuple[str, click.Path]]:
    if isinstance(command, click.Group):
        for part in command.commands.values():
            yield from paths_of(part)
    for parameter in command.params:
        if isinstance(parameter.type, click.Path):
            yield f"{command.name} {parameter.opts[0]}", parameter.type


PATHS = dict(paths_of(commands))


def test_every_command_with_a_path_argument_is_covered() -> None:
    assert {"new folder", "check folder", "report --epochs", "add file"} <= set(PATHS)


@pytest.mark.parametrize("name", PATHS)
def test_a_leading_tilde_is_expanded_to_the_home_folder(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    place = tmp_path / "x"
    place.mkdir() if PATHS[name].dir_okay else place.touch()
    assert PATHS[name].convert("~/x", None, None) == place


SECRET = {
    "--store": ("MIXSWEEP_STORE", "s3://me:cAnArY@host/x"),
    "--optuna": ("MIXSWEEP_OPTUNA", "postgresql://me:cAnArY@host/db"),
    "--tracking-uri": ("MLFLOW_TRACKING_URI", "http://me:cAnArY@host:5000"),
    "--address": ("RAY_ADDRESS", "ray://me:cAnArY@host:10001"),
}
ADDRESSES = [
    (verb, option)
    for verb, command in commands.commands.items()
    if not isinstance(command, click.Group)
    for parameter in command.params
    for option in parameter.opts
    if option in SECRET
]


def test_commands_with_addresses_are_covered() -> None:
    assert {("run", "--store"), ("report", "--store"), ("submit", "--address")} <= {*ADDRESSES}


@pytest.mark.parametrize(("verb", "option"), ADDRESSES)
def test_an_address_with_a_login_is_refused_as_an_option(verb: str, option: str) -> None:
    variable, address = SECRET[option]
    said = CliRunner().invoke(commands, [verb, "digits", option, address])
    assert said.exit_code == 2
    shown = " ".join(said.output.split())
    assert variable in shown or "RAY_API_SERVER_ADDRESS" in shown
    assert "cAnArY" not in said.output


def test_an_address_with_a_login_is_accepted_from_a_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MIXSWEEP_HOME", str(tmp_path))
    monkeypatch.setenv("MLFLOW_TRACKING_URI", SECRET["--tracking-uri"][1])
    said = CliRunner().invoke(commands, ["status", "digits"])
    assert "cAnArY" not in said.output
    assert "the address" not in said.output


@pytest.mark.parametrize("words", [("share", "digits", "--out"), ("publish", "--out"), ("add",)])
def test_paths_with_control_characters_are_refused_and_not_printed(words: tuple[str, ...]) -> None:
    said = CliRunner().invoke(commands, [*words, "a\x1b[2Jb"], color=True)
    assert said.exit_code == 2
    assert "control character" in said.output
    assert "\x1b" not in said.output
