"""Data commands: say which data sets are here, and fetch them."""

import click

from mixup_core.images.data.fetching import data_root, fetch, statuses
from sweeps.commands.request import DONE


@click.group()
def data() -> None:
    """Say which data sets are here, and fetch them."""


@data.command("list")
def list_data() -> int:
    """List the data sets and where they are."""
    for found in statuses(data_root()):
        here = found.place if found.is_present else f"missing; mixsweep data fetch {found.name}"
        click.echo(f"{found.name:<14} {here}")
    return DONE


@data.command("fetch")
@click.argument("name")
def fetch_data(name: str) -> int:
    """Bring a data set to this machine; one that is already there is left alone."""
    click.echo(f"{name}: {fetch(name, data_root())}")
    return DONE
