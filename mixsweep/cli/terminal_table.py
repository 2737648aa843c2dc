"""Terminal table: the main table of a report, cut to the columns and arms that fit the terminal."""

import click

from sweeps.machine.terminal_text import (
    RESERVED_LINES,
    clipped,
    padded,
    screen,
    shortened,
    width_of,
    wrapped,
)


def show_table(markdown: str) -> None:
    """Print the tables of a report; on a terminal only the main table, cut so that it fits.

    Args:
        markdown: The tables, as Markdown.
    """
    size = screen()
    if size is None:
        click.echo(markdown)
        return
    click.echo(fitted(markdown, size.columns, size.lines - RESERVED_LINES) or markdown)


def fitted(markdown: str, columns: int, rows: int) -> str:
    """Return the main table of a report, cut to the columns and arms that fit a terminal.

    Args:
        markdown: Tables of a report; the main table is the one whose first column is `arm`.
        columns: Characters per line.
        rows: Number of lines.

    Returns:
        The table as text; empty if there is no main table.
    """
    grid = _main_grid(markdown)
    if not grid:
        return ""
    longest = max(12, columns // 2)
    grid = [[shortened(line[0], longest), *line[1:]] for line in grid]
    widths = [max(width_of(line[place]) for line in grid) for place in range(len(grid[0]))]
    num_columns = len(widths)
    while num_columns > 2 and sum(widths[:num_columns]) + 2 * (num_columns - 1) >= columns:
        num_columns -= 1
    shown = grid if len(grid) <= max(rows, 4) else grid[: max(rows, 4) - 1]
    lines = [
        "  ".join(padded(cell, w) for cell, w in zip(line[:num_columns], widths, strict=False))
        for line in shown
    ]
    if more := len(grid) - len(shown):
        lines.append(f"... {more} more")
    if any("†" in cell for line in shown for cell in line[:num_columns]):
        lines.append("†: not significantly different from the best mean")
    lines = [_cut(line.rstrip(), columns - 1) for line in lines]
    if hidden := grid[0][num_columns:]:
        lines.append(wrapped(f"not shown: {'; '.join(hidden)}", columns - 1))
    return "\n".join(lines)


def _cut(line: str, length: int) -> str:
    return line if width_of(line) <= length else f"{clipped(line, length - 3)}..."


def _main_grid(markdown: str) -> list[list[str]]:
    """Return the cells of the first Markdown table whose first column is `arm`, row by row."""
    found: list[list[str]] = []
    for line in markdown.splitlines():
        if not line.startswith("|"):
            if found:
                break
            continue
        cells = _cells(line)
        if found or cells[0] == "arm":
            found.append(cells)
    return [found[0], *found[2:]] if len(found) > 2 else []


def _cells(line: str) -> list[str]:
    """Return the cells of one line of a Markdown table, without Markdown markup."""
    hidden = line.strip().strip("|").replace("\\|", "\0")
    cells = (cell.strip().strip("*").replace("\0", "|") for cell in hidden.split("|"))
    return [_unescaped(cell) for cell in cells]


def _unescaped(cell: str) -> str:
    for letter in "\\`*_{}[]()<>#+-.!":
        cell = cell.replace(f"\\{letter}", letter)
    return cell
