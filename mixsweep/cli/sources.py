"""Sources: BibTeX entries for the papers that a study names."""

import dataclasses
import re
import sys
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import click

from mixup_core.numeric_settings import installed_version
from sweeps.study.study import Study

_ARXIV = re.compile(r"arXiv:(\d{4}\.\d{4,5})")
_OF_DATA = {"fashion-mnist": "1708.07747"}


def tell_sources(study: Study) -> None:
    """Print BibTeX entries for the papers that a study and its methods name, and for mixsweep.

    A paper whose BibTeX entry is not bundled is printed as its arXiv number.
    """
    entries = _known_entries()
    click.echo(
        "@software{mixsweep,\n"
        "  title = {mixsweep: paired, resumable studies of mixup training},\n"
        "  author = {{The mixsweep authors}},\n"
        f"  version = {{{installed_version('mixsweep') or 'unknown'}}},\n}}"
    )
    for number in works_of(study):
        click.echo(f"\n{entries.get(number) or _bare(number)}")


def works_of(study: Study) -> list[str]:
    """Return the arXiv numbers of the papers that a study and its methods come from.

    The numbers in the study file come first, in its order. Then come, for each arm, the numbers in
    the docstrings of the classes that it uses, such as its law, and that of its dataset (known for
    Fashion-MNIST only). No number is listed twice.
    """
    found = _ARXIV.findall(study.source)
    for config in study.arms.values():
        for part in _dataclasses_in(config):
            kind = type(part)
            texts = (kind.__doc__, getattr(sys.modules.get(kind.__module__), "__doc__", None))
            found += [number for text in texts for number in _ARXIV.findall(text or "")]
        if (data := study.problem.comparing.dataset(config)) in _OF_DATA:
            found.append(_OF_DATA[data])
    return list(dict.fromkeys(found))


def _dataclasses_in(value: Any) -> Iterator[Any]:
    if isinstance(value, tuple):
        for item in value:
            yield from _dataclasses_in(item)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        yield value
        for field in dataclasses.fields(value):
            yield from _dataclasses_in(getattr(value, field.name))


def _known_entries() -> dict[str, str]:
    """Return the bundled BibTeX entries by arXiv number."""
    text = files("sweeps.studies").joinpath("sources.bib").read_text(encoding="utf-8")
    entries = {}
    for entry in re.findall(r"^@.*?^\}", text, re.MULTILINE | re.DOTALL):
        if number := re.search(r"eprint = \{(.*?)\}", entry):
            link = (
                f"  archiveprefix = {{arXiv}},\n  url = {{https://arxiv.org/abs/{number[1]}}},\n}}"
            )
            entries[number[1]] = entry.removesuffix("}") + link
    return entries


def _bare(number: str) -> str:
    return (
        f"@misc{{arxiv-{number},\n  eprint = {{{number}}},\n  archiveprefix = {{arXiv}},\n"
        f"  url = {{https://arxiv.org/abs/{number}}},\n}}"
    )
