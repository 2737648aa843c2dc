"""check: test that a plugin keeps rules, such as that a resumed run gives equal bits."""

import sys

import click

from mixsweep.request import DONE, SOME_FAILED


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
