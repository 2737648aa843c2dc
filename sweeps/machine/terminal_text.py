"""Terminal text: shortens names, lines and tables to the size of a terminal; shows long waits."""

import os
import re
import shutil
import sys
import textwrap
import threading
import time
import unicodedata
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TextIO

_LABEL = re.compile(r"( *\S+(?: \S+)? {2,})?")
"""Label at the start of a line, such as `disk      `; the rest of the line wraps beside it."""
_LONGEST_LABEL = 24
COLUMNS = 100
"""Largest width of the text at the end of a run."""
_LEAST_NAME = 5
"""Length of a name that is cut at its end instead of in its middle."""
RESERVED_LINES = 8
"""Lines of the terminal kept free for the text that is printed around a table."""


def screen(stream: TextIO | None = None) -> os.terminal_size | None:
    """Return the size of the terminal that a stream goes to; None if it goes elsewhere."""
    stream = stream or sys.stdout
    return shutil.get_terminal_size() if stream.isatty() else None


def fitted_text(text: str, stream: TextIO | None = None) -> str:
    """Return a text wrapped to the terminal that a stream goes to; unchanged without one.

    Rows of a Markdown table stay as they are.
    """
    size = screen(stream)
    if size is None:
        return text
    lines = text.split("\n")
    return "\n".join(
        line if line.startswith("| ") else wrapped(line, size.columns - 1) for line in lines
    )


def wrapped(line: str, columns: int) -> str:
    """Return a line, broken at blanks into lines of at most `columns` characters.

    Further lines are indented by the label, such as `disk      `. No word is broken.
    """
    columns = max(1, columns)
    if width_of(line) <= columns:
        return line
    label = _LABEL.match(line)
    indent = len(label[0]) if label else 0
    return textwrap.fill(
        line,
        columns,
        subsequent_indent=" " * (indent if 0 < indent <= _LONGEST_LABEL else 2),
        break_long_words=False,
        break_on_hyphens=False,
        replace_whitespace=False,
    )


def arm_table(
    header: str, rows: Mapping[str, str], size: os.terminal_size | None, first: Collection[str] = ()
) -> list[str]:
    """Return the lines of a table with one row per arm, cut to the size of a terminal."""
    longest = None if size is None else max(12, (size.columns - 1 - len(header) - 2))
    names = {arm: arm if longest is None else shortened(arm, longest) for arm in rows}
    width = max(map(width_of, ("arm", *names.values())))
    lines = {arm: f"{padded(names[arm], width)}  {row}" for arm, row in rows.items()}
    most = None if size is None else max(2, size.lines - RESERVED_LINES)
    return [f"{'arm':<{width}}  {header}", *chosen(lines, most, first)]


def chosen(lines: Mapping[str, str], most: int | None, first: Collection[str] = ()) -> list[str]:
    """Return lines in their order, at most `most`: the last then says `... 3 more`."""
    if most is None or len(lines) <= most:
        return list(lines.values())
    names = set(sorted(lines, key=lambda name: name not in first)[: max(0, most - 1)])
    shown = [line for name, line in lines.items() if name in names]
    return [*shown, f"... {len(lines) - len(shown)} more"]


def shortened(name: str, length: int) -> str:
    """Return a name of at most `length` columns; arms of a grid differ at the ends, which stay."""
    if width_of(name) <= length:
        return name
    if length <= _LEAST_NAME:
        return clipped(name, length)
    tail = (length - 3) // 2
    return f"{clipped(name, length - 3 - tail)}...{clipped(name[::-1], tail)[::-1]}"


def clipped(text: str, columns: int) -> str:
    while text and width_of(text) > columns:
        text = text[: max(0, min(len(text) - 1, columns))]
    return text


def padded(text: str, columns: int) -> str:
    return text + " " * (columns - width_of(text))


def width_of(text: str) -> int:
    """Return the number of columns that a text has on a terminal; a Chinese character has 2."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(letter)
        else 2 if unicodedata.east_asian_width(letter) in "WF"
        else 1
        for letter in text
    )  # fmt: skip


@contextmanager
def still(
    what: str,
    stream: TextIO | None = None,
    *,
    left: Callable[[], str] | None = None,
    after: float = 1.0,
    every: float = 8.0,
) -> Iterator[None]:
    """Print what the program is doing during a long block, then the time every few seconds."""
    done, started = threading.Event(), time.monotonic()
    stream = stream or sys.stderr

    def tell() -> None:
        line, wait = what, after
        while not done.wait(wait):
            with suppress(OSError, ValueError):  # the reader is gone
                stream.write(f"{line}\n")
                stream.flush()
            wait = every
            line = f"{what}, {time.monotonic() - started + every:.0f} s"
            line += "" if left is None else f", {left()}"

    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield
    finally:
        done.set()
        teller.join(1.0)  # it may wait for a reader of the output
