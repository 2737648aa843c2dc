"""FileFault: a file of an image-folder that cannot be used, and messages that list such files."""

import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from mixup_core.images.data.facts import DataError
from mixup_core.rules import printable

EMPTY_CLASS = "an empty class; add an image, or leave the class out with data.skip."
_ADVICE = "convert or remove these files, or leave them out with data.skip"
_NAMED = 3
"""Number of files that a line about many files names. So many or fewer have a line each."""
_MOST_LINES = 20
_VARIABLE = re.compile(r"\d[\d.,]*|'[^']*'")
"""Parts of a text that differ between files with the same fault: numbers and quoted names."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FileFault:
    """A file or class folder of an image-folder that cannot be used, and the reason."""

    name: str
    """Path relative to the image-folder, with `/`."""
    text: str
    """The fault and its remedy, as a sentence."""

    @classmethod
    def of(cls, error: Exception, file: Path, folder: Path) -> Self:
        """Return the fault of a file, given the error that checking or reading the file raised."""
        text = str(error).removeprefix(f"{printable(str(file))}: ")
        return cls(name=file.relative_to(folder).as_posix(), text=text)

    def line(self, folder: Path) -> str:
        """Return one line that names the file with its path, and says why it cannot be used."""
        return printable(f"{folder / self.name}: {self.text}")


class FileFaultsError(DataError):
    """Error: files of an image-folder cannot be used. If they are many, the message names some."""

    def __init__(self, folder: Path, faults: Sequence[FileFault]) -> None:
        advice = [] if all(fault.text == EMPTY_CLASS for fault in faults) else [_ADVICE]
        super().__init__("\n".join([*grouped_lines(folder, faults), *advice]))


def all_lines(folder: Path, faults: Iterable[FileFault]) -> list[str]:
    """Return one line for each file of an image-folder that cannot be used."""
    return [fault.line(folder) for fault in faults]


def grouped_lines(folder: Path, faults: Sequence[FileFault]) -> list[str]:
    """Return lines about files that cannot be used; many files with the same fault share a line.

    Faults whose texts differ only in numbers and quoted names count as the same. There are at most
    20 lines; if they do not name every file, one more line gives the command that does.
    """
    groups: dict[str, list[FileFault]] = {}
    for fault in faults:
        groups.setdefault(_VARIABLE.sub("", fault.text), []).append(fault)
    lines: list[str] = []
    for group in groups.values():
        if len(group) <= _NAMED:
            lines += all_lines(folder, group)
        else:
            lines.append(printable(f"{folder}: {_spell(group)}"))
    if len(lines) == len(faults) <= _MOST_LINES:
        return lines
    more = len(lines) - _MOST_LINES
    rest = f"{more} more lines; " if more > 0 else ""
    command = f"mixsweep data check {shlex.quote(str(folder))} --all"
    return [*lines[:_MOST_LINES], printable(f"{rest}`{command}` lists every file")]


def _spell(group: Sequence[FileFault]) -> str:
    """Return the text about many files with the same fault; only the first files are named."""
    first = ", ".join(fault.name for fault in group[:_NAMED])
    texts = {fault.text for fault in group}
    text = group[0].text if len(texts) == 1 else f"the first of them: {group[0].text}"
    return f"{len(group):,} files, {first} and {len(group) - _NAMED:,} more: {text}"
