"""new: write an example study, with a plugin that it uses and a test of the plugin."""

import os
from importlib import resources
from pathlib import Path

import click

from mixsweep.cli.options import LocalPath
from mixsweep.request import DONE, RefusedError
from mixup_core.temporary import output_file
from sweeps.machine.command_line import program

_FILES = ("study.yaml", "plugin.py", "test_plugin.py")


@click.command()
@click.argument("folder", type=LocalPath(file_okay=False), default=".")
def new(folder: Path) -> int:
    """Write an example into FOLDER: study.yaml, its plugin.py and test_plugin.py, ready to run.

    No existing file is replaced.
    """
    there = [name for name in _FILES if os.path.lexists(folder / name)]
    if there:
        raise RefusedError(
            f"{folder / there[0]}: exists already and is not replaced; name another folder"
        )
    folder.mkdir(parents=True, exist_ok=True)
    for name in _FILES:
        template = resources.files("mixsweep.templates").joinpath(name)
        with output_file(folder / name, "a file of this example", lambda _: False) as unfinished:
            unfinished.write_bytes(template.read_bytes())
    plugin, study = folder / "plugin.py", folder / "study.yaml"
    click.echo(f"wrote  {', '.join(str(folder / name) for name in _FILES)}")
    click.echo(f"next   {program()} check {plugin}")
    click.echo(f"       {program()} run {study}")
    return DONE
