"""studies: list the studies that come with mixsweep."""

import json
import re

import click

from mixsweep.cli.options import loading_option
from mixsweep.request import DONE, RefusedError
from sweeps.machine.terminal_text import fitted_text
from sweeps.reading.schema import study_schema
from sweeps.reading.study_file import bundled_studies


@click.command("studies")
@click.argument("word", required=False, default="")
def list_studies(word: str) -> int:
    """List the studies that come with mixsweep; with WORD, those that have it in name or text."""
    studies = {
        name: description
        for name, description in bundled_studies().items()
        if word.lower() in f"{name} {description}".lower()
    }
    if not studies:
        raise RefusedError(f"no bundled study has {word!r} in its name or description")
    width = max(map(len, studies)) + 1
    for name, description in studies.items():
        summary = re.split(r"(?<!et al)\. ", description, maxsplit=1)[0]
        click.echo(fitted_text(f"{name:<{width}} {summary}"))
    return DONE


@click.command()
@loading_option
def schema() -> int:
    """Print the JSON Schema of study files, with which editors complete and check them."""
    click.echo(json.dumps(study_schema(), indent=2))
    return DONE
