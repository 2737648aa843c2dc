"""studies: list the studies that come with mixsweep, by question."""

import json
import textwrap
from collections.abc import Mapping
from importlib import resources
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import click
import yaml

from mixsweep.cli.options import StudyCommand, home_of, home_option, loading_option, store_option
from mixsweep.launching.costs import seconds_of_all
from mixsweep.request import DONE, RefusedError
from mixup_core.store.checkpoints import Store
from sweeps.machine.command_line import program
from sweeps.machine.home import Home
from sweeps.machine.resources import usable_cpus
from sweeps.machine.terminal_text import fitted_text
from sweeps.reading.schema import study_schema
from sweeps.reading.study_file import load_study
from sweeps.running.progress import spell_duration
from sweeps.state.ledger import launches
from sweeps.state.results import read_results
from sweeps.study.budget import SECONDS_PER_HOUR

COLUMNS = 100
"""Longest line of the list."""


class Listed(NamedTuple):
    """A line of the list of bundled studies."""

    question: str
    """The question that its group of studies is about."""
    seconds: float | None
    """Training time of its published runs, added up; None if they were never run on CPUs."""
    line: str
    """The topic of the study, in at most 55 characters."""


def catalogue() -> Mapping[str, Listed]:
    """Return the line of every bundled study, by name, in the order of the list."""
    text = resources.files("mixsweep.cli").joinpath("studies.yaml").read_text(encoding="utf-8")
    return {
        name: Listed(question, *facts)
        for question, group in yaml.safe_load(text).items()
        for name, facts in group.items()
    }


def description_of(name: str) -> str:
    """Return the description of a bundled study, without checking the rest of its file."""
    text = resources.files("sweeps.studies").joinpath(f"{name}.yaml").read_text(encoding="utf-8")
    return str(yaml.safe_load(text.partition("\nbase:")[0])["description"])


@click.command("studies", cls=StudyCommand)
@click.argument("words", nargs=-1, metavar="[WORD...]")
@store_option
@home_option
def list_studies(words: tuple[str, ...], home: Path, store_url: str | None) -> int:
    """List the studies that come with mixsweep, by question, with how long they take.

    With the name of a study as WORD: its whole description. With any other words: the studies that
    have all of them in their name, question or description.
    """
    listed, place = catalogue(), home_of(home, store_url)
    if len(words) == 1 and words[0] in listed:
        _describe(words[0], listed[words[0]], place)
        return DONE
    matches = {
        n: entry for n, entry in listed.items() if all(_has(word, n, entry) for word in words)
    }
    if not matches:
        raise RefusedError(
            f"no bundled study has {' and '.join(map(repr, words))} in its name, question or "
            f"description; `{program()} studies` lists all of them"
        )
    measured, width = _measured(matches, place), max(map(len, matches))
    rows: list[str] = []
    for question, group in groupby(matches, lambda name: matches[name].question):
        names = list(group)
        short = [name for name in names if not words and _is_unknown(name, matches, measured)]
        rows += ["", question]
        rows += [
            f"  {name:<{width}} {_time(name, matches[name], measured):>8}  {matches[name].line}"
            for name in names
            if name not in short
        ]
        if short:
            text = f"  no measured time: {', '.join(short)}"
            rows += textwrap.wrap(text, COLUMNS, subsequent_indent="    ", break_on_hyphens=False)
    source = "*: measured by runs stored here; others" if measured else "computed"
    rows += [
        "",
        f"Times: all runs on {usable_cpus()} CPUs here; {source} from the published runs of "
        "another machine.",
        f"`{program()} studies NAME` describes a study; `{program()} plan NAME` plans it.",
    ]
    click.echo("\n".join(map(fitted_text, rows[1:])))
    return DONE


def _is_unknown(name: str, matches: Mapping[str, Listed], measured: Mapping[str, float]) -> bool:
    """Return True if no time is known; False for `digits`, the first study of a new user."""
    return matches[name].seconds is None and name not in measured and name != "digits"


def _has(word: str, name: str, entry: Listed) -> bool:
    text = f"{name} {entry.question} {entry.line}"
    return word.lower() in text.lower() or word.lower() in description_of(name).lower()


def _measured(names: Mapping[str, Listed], home: Home) -> dict[str, float]:
    """Return the training time of all runs of a study, by name, from runs stored in this home."""
    store, measured = Store(home.store), {}
    for name in {launch.study for launch in launches(store) if not launch.archive} & names.keys():
        study = load_study(name)
        seconds = None if study.search else seconds_of_all(read_results(study.runs(), store))
        if seconds is not None:
            measured[name] = seconds
    return measured


def _time(name: str, entry: Listed, measured: Mapping[str, float]) -> str:
    """Return the time that a study takes on the CPUs here, such as `12 min`; with * if measured."""
    if (seconds := measured.get(name, entry.seconds)) is None:
        return "-"
    seconds = max(1.0, seconds / usable_cpus())
    hours = seconds / SECONDS_PER_HOUR
    text = spell_duration(seconds) if hours < 1 else f"{hours:.1f} h"
    return f"{text}*" if name in measured else f"{text} "


def _describe(name: str, listed: Listed, home: Home) -> None:
    click.echo(f"{name}: {listed.line}\n")
    click.echo(textwrap.fill(description_of(name), COLUMNS, break_on_hyphens=False))
    time = _time(name, listed, _measured({name: listed}, home)).rstrip()
    click.echo(f"\nquestion  {listed.question}")
    if time != "-":
        source = "measured by runs stored here" if time.endswith("*") else "from its published runs"
        click.echo(f"time      {time.rstrip('*')} on {usable_cpus()} CPUs, {source}")
    click.echo(f"next      {program()} plan {name}")


@click.command(cls=StudyCommand)
@loading_option
def schema() -> int:
    """Print the JSON Schema of study files, with which editors complete and check them."""
    click.echo(json.dumps(study_schema(), indent=2))
    return DONE
