from pathlib import Path

import pytest

from tests.soak.damage import COMMANDS, KINDS, Cell, Ending, cells, judge

SOUND = {"runs.csv": "a", "table.csv": "b"}


def ending(code: int | None = 0, said: str = "", **exports: str) -> Ending:
    left = {
        f"{name}.csv": sha256 for name, sha256 in {"runs": "a", "table": "b", **exports}.items()
    }
    return Ending(code=code, said=said, file=Path("store/aa01.json"), exports=left)


def test_every_kind_of_file_meets_every_command() -> None:
    met = {(cell.kind, cell.command) for cell in cells()}
    assert met == {(kind, command) for kind in KINDS for command in COMMANDS}
    assert len({str(cell) for cell in cells()}) == len(list(cells())) > 1000


@pytest.mark.parametrize(
    ("found", "wrong"),
    [
        (ending(), None),
        (ending(2, "stages/aa/aa01.json: store format 3"), None),
        (ending(2, "something is wrong"), "not named"),
        (ending(None, "waiting"), "hangs"),
        (ending(1, "Traceback\naa01.json\nKeyError: 5"), "traceback: KeyError: 5"),
        (ending(0, runs="c"), "other bytes in runs.csv"),
        (ending(1, "aa01", table="c"), "other bytes in table.csv"),
        (ending(-9, "aa01"), "exit -9"),
    ],
)
def test_a_cell_is_wrong_if_it_hangs_fails_or_changes_what_was_good(
    found: Ending, wrong: str | None
) -> None:
    told = judge(Cell(kind="failure", damage="empty", command="run"), found, SOUND)
    assert (told is None) if wrong is None else wrong in (told or "")


def test_a_damaged_export_is_to_be_written_again_by_what_writes_reports_alone() -> None:
    damaged = Ending(code=0, said="", file=Path("reports/table.csv"), exports={"runs.csv": "a"})
    for command, is_right in (("run", False), ("report", False), ("plan", True), ("sync", True)):
        cell = Cell(kind="table of the report", damage="missing", command=command)
        assert (judge(cell, damaged, SOUND) is None) == is_right
