"""Terminal text: names, lines and tables fit a terminal and lose nothing unsaid."""

import io
import os

import pytest

from sweeps.machine import terminal_text
from sweeps.machine.terminal_text import (
    arm_table,
    clipped,
    fitted_text,
    shortened,
    width_of,
    wrapped,
)


@pytest.mark.parametrize("columns", range(12))
def test_texts_fit_a_terminal_of_a_few_columns(columns: int) -> None:
    size = os.terminal_size((columns, 5))
    for text in ("disk      records and more", "law=beta(0.2)", "学習率 lr", ""):
        assert wrapped(text, columns - 1).split() == text.split()
        assert width_of(clipped(text, columns - 1)) <= max(0, columns - 1)
        assert width_of(shortened(text, columns)) <= columns
    assert arm_table("done", {"arm lr=0.1 batch=16": "1/3"}, size)


@pytest.mark.parametrize(
    "names", [["arm lr=0.1 batch=16"] * 30, ["лось кони"] * 30, ["学習率"] * 30]
)
@pytest.mark.parametrize("columns", [60, 80, 140])
def test_a_table_of_arms_fits_the_terminal_and_counts_omitted_arms(
    names: list[str], columns: int
) -> None:
    rows = {f"{name * 5} {place}": "2       0       2" for place, name in enumerate(names)}
    wanted = list(rows)[20:25]
    header, *lines = arm_table(
        "runs  stored  to run", rows, os.terminal_size((columns, 20)), wanted
    )
    assert header.startswith("arm")
    assert max(map(width_of, lines)) < columns
    assert len({width_of(line) for line in lines[:-1]}) == 1
    assert [line.split()[-4] for line in lines[:-1]] == [*"012345", *map(str, range(20, 25))]
    assert lines[-1] == "... 19 more"
    assert len(arm_table("runs", rows, None)) == 31


def test_text_is_wrapped_only_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal, size = io.StringIO(), os.terminal_size((40, 20))
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr(terminal_text.shutil, "get_terminal_size", lambda *_, **__: size)
    text = "word " * 20
    assert fitted_text(text, io.StringIO()) == text
    assert max(map(len, fitted_text(text, terminal).splitlines())) < 40
    row = "| " + "word " * 20
    assert fitted_text(f"{row}\n{text}\n", terminal).startswith(f"{row}\nword")
    assert fitted_text("word\n", terminal) == "word\n"
