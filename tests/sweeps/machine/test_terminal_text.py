"""Terminal text: names, lines and tables fit a terminal and lose nothing unsaid."""

import io
import os

import pytest

from sweeps.machine import terminal_text
from sweeps.machine.terminal_text import (
    arm_table,
    chosen,
    clipped,
    fitted_text,
    padded,
    shortened,
    width_of,
    wrapped,
)


@pytest.mark.parametrize("length", [8, 11, 20])
def test_a_long_name_keeps_both_ends_within_its_length(length: int) -> None:
    name = "law=beta(0.2) lr=0.1 epochs=300"
    short = shortened(name, length)
    assert len(short) == length
    head, tail = short.split("...")
    assert name.startswith(head)
    assert name.endswith(tail)
    assert shortened("erm", length) == "erm"


@pytest.mark.parametrize("columns", range(12))
def test_texts_fit_a_terminal_of_a_few_columns(columns: int) -> None:
    size = os.terminal_size((columns, 5))
    for text in ("disk      records and more", "law=beta(0.2)", "学習率 lr", ""):
        assert wrapped(text, columns - 1).split() == text.split()
        assert width_of(clipped(text, columns - 1)) <= max(0, columns - 1)
        assert width_of(shortened(text, columns)) <= columns
    assert arm_table("done", {"arm lr=0.1 batch=16": "1/3"}, size)


@pytest.mark.parametrize("columns", [60, 79, 139])
@pytest.mark.parametrize(
    "line",
    [
        "disk      records, 2.3 MB of predictions, " + "and at most some states " * 6,
        "  epoch 1   stage 694bec3f98df0052e18c6a8369ee5e25, trained by this run " + "on vm " * 20,
        "study.yaml:11: no arm 'uniform'; its arms are " + "arm lr=0.1 batch_size=16, " * 8,
        "short",
    ],
)
def test_a_wrapped_line_keeps_every_word_and_indents_below_its_label(
    line: str, columns: int
) -> None:
    lines = wrapped(line, columns).splitlines()
    assert max(map(len, lines)) <= columns
    assert " ".join(lines).split() == line.split()
    assert all(follower.startswith("  ") for follower in lines[1:])
    if line.startswith("disk"):
        assert all(follower.startswith(" " * 10) for follower in lines[1:])


def test_a_path_is_not_wrapped() -> None:
    path = "/home/" + "folder/" * 20 + "report.html"
    assert path in wrapped(f"report    {path}", 60).split()


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


def test_requested_lines_are_kept_in_their_order() -> None:
    lines = {name: name.upper() for name in "abcdef"}
    assert chosen(lines, 4, {"e"}) == ["A", "B", "E", "... 3 more"]
    assert chosen(lines, 6, {"e"}) == list("ABCDEF")
    assert chosen(lines, 1) == ["... 6 more"]


def test_text_is_wrapped_only_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    class _Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    size = os.terminal_size((40, 20))
    monkeypatch.setattr(terminal_text.shutil, "get_terminal_size", lambda *_, **__: size)
    text = "word " * 20
    assert fitted_text(text, io.StringIO()) == text
    assert max(map(len, fitted_text(text, _Terminal()).splitlines())) < 40


def test_wide_characters_count_as_two_columns() -> None:
    assert width_of("学習率") == width_of(padded("学", 6)) == 6
    assert width_of("e\u0301") == 1
    assert width_of(shortened("学習率を変える", 9)) <= 9
