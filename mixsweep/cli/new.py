"""new, check: write an example plugin, and test that a plugin keeps rules, such as equal bits."""

import os
import sys
from importlib import resources
from pathlib import Path

import click

from mixsweep.cli.options import LocalPath
from mixsweep.request import DONE, SOME_FAILED, RefusedError
from mixup_core.temporary import output_file
from sweeps.machine.command_line import program

_FILES = ("study.yaml", "plugin.py", "test_plugin.py")


@click.command()
@click.argument("folder", type=LocalPath(file_okay=False), default=".")
def new(folder: Path) -> int:
    """Write an example into FOLDER: study.yaml, its plugin.py and test_plugin.py, ready to run.

    No existing file is replaced.
    """
    existing = [name for name in _FILES if os.path.lexists(folder / name)]
    if existing:
        raise RefusedError(
            f"{folder / existing[0]}: exists already and is not replaced; name another folder"
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


@click.command()
@click.argument("plugin")
def check(plugin: str) -> int:
    """Test a plugin on generated images.

    PLUGIN is a Python file, or the name of an installed distribution.

    The rules: every field enters the run key, a resumed run gives equal bits, no code draws from
    global random generators, recorded values are within their bounds, a probe (extra metric) does
    not change training, and training uses no test image. Objectives are tested with a teacher that
    is trained during the check, and a problem is run with its smallest configuration. Exit codes:
    0 if the plugin keeps all rules, 1 if it breaks one, 2 if it cannot be loaded.
    """
    from mixup_core.plugins.loading import load_distribution, use
    from sweeps.reading.schema import study_schema

    had_torch = "torch" in sys.modules
    loaded = use(plugin) if plugin.endswith(".py") else load_distribution(plugin)
    click.echo(f"loaded  {loaded.source.name}: {', '.join(loaded.names)}")
    if "torch" in sys.modules and not had_torch:
        click.echo(
            "advice  import torch inside functions: at the top of a plugin it slows every command"
        )
    if loaded.remark:
        click.echo(f"advice  {loaded.remark}")
    study_schema()
    click.echo("holds   the JSON Schema of study files has the fields of the plugin")
    from mixup_core.plugins.checking import check_plugin

    num_broken = 0
    for finding in check_plugin(loaded):
        num_broken += bool(finding.broken)
        verdict, detail = ("BROKEN", f": {finding.broken}") if finding.broken else ("holds ", "")
        click.echo(f"{verdict}  {finding.entry}: {finding.contract}{detail}")
    click.echo(
        "the plugin keeps every rule"
        if num_broken == 0
        else f"{num_broken} broken {'rule' if num_broken == 1 else 'rules'}"
    )
    return SOME_FAILED if num_broken else DONE
