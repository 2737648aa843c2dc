"""Options of several commands: every path on the command line may begin with `~`."""

from collections.abc import Iterator
from pathlib import Path

import click
import pytest

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
    assert {"init folder", "check folder", "export --out", "add file"} <= set(PATHS)


@pytest.mark.parametrize("name", PATHS)
def test_a_leading_tilde_is_expanded_to_the_home_folder(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    place = tmp_path / "x"
    place.mkdir() if PATHS[name].dir_okay else place.touch()
    assert PATHS[name].convert("~/x", None, None) == place
