from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.soak.damage import COMMANDS, Cell, Ending, cells, judge
from tests.soak.kinds import GRID, KINDS, REPORTED
from tests.soak.warm import Ended

REPORTS = Path("runs/reports")
SOUND = dict.fromkeys(REPORTED, "as it was")


def cell(kind: str = "failure", damage: str = "empty", command: str = "run") -> Cell:
    return Cell(kind=kind, damage=damage, command=command)


def ending(
    code: int | None = 0,
    err: str = "",
    *,
    file: Path = Path("store/failures/aa01.json"),
    changed: Mapping[str, str] | None = None,
    beside: Mapping[str, str] | None = None,
) -> Ending:
    reports = {GRID: {**SOUND, **(changed or {})}}
    if beside is not None:
        reports[f"{GRID}@0123"] = dict(beside)
    return Ending(ended=Ended(code=code, out="", err=err), file=file, reports=reports)


def test_a_message_about_an_image_may_have_a_second_line_with_advice() -> None:
    of, file = cell("image", command="status"), Path("photos/train/cat/0.png")
    advice = "convert or remove these files\n"
    told = f"{file}: not an image file\n{advice}"
    assert judge(of, ending(2, told, file=file), SOUND) is None
    assert "3 lines" in str(judge(of, ending(2, told + advice, file=file), SOUND))


def test_every_kind_of_damaged_file_is_tried_with_every_command() -> None:
    met = {(cell.kind, cell.command) for cell in cells()}
    assert met == {(kind, command) for kind in KINDS for command in COMMANDS}
    assert len({str(cell) for cell in cells()}) == len(list(cells())) > 5000


@pytest.mark.parametrize(
    ("found", "wrong"),
    [
        (ending(), None),
        (ending(0, "failures/aa01.json is damaged; moved to quarantine\n"), None),
        (ending(None, "waiting"), "hangs: nobody knows where"),
        (ending(None, 'Thread:\n  File "/a/home/b.py", line 3 in c\n'), "hangs: b.py, line 3 in c"),
        (ending(1, "Traceback\naa01.json\nKeyError: 5"), "traceback: KeyError: 5"),
        (ending(0, changed={"runs.csv": "other"}), "other bytes in runs.csv"),
        (ending(2, "aa01.json", changed={"table.csv": "other"}), "other bytes in table.csv"),
        (ending(0, changed={"provenance.json": "another time"}), None),
        (ending(-9, "aa01"), "exit -9"),
        (ending(1, "aa01"), "exit 1"),
        (ending(2, "failures/aa01.json: cannot be read"), "can be made again"),
    ],
)
def test_a_launch_is_judged_wrong_if_it_hangs_fails_or_changes_intact_files(
    found: Ending, wrong: str | None
) -> None:
    told = judge(cell(), found, SOUND)
    assert (told is None) if wrong is None else wrong in (told or "")


@pytest.mark.parametrize(
    ("err", "wrong"),
    [
        ("failures/aa01.json: store format 3, this program knows 1\n", None),
        (f"{GRID}: 4 runs are stored, nothing to train\naa01.json: damaged\n", None),
        (f"runs/{GRID}: opening aa01.json takes writing rights\n", None),
        ("something is wrong\n", "not named"),
        ("aa01.json: damaged\naa01.json: remove it\n", "2 lines"),
        ("", "0 lines"),
    ],
)
def test_a_refusal_is_judged_wrong_unless_it_names_the_file_in_one_line(
    err: str, wrong: str | None
) -> None:
    told = judge(cell(damage="newer format"), ending(2, err), SOUND)
    assert (told is None) if wrong is None else wrong in (told or "")


def test_a_report_that_lacks_a_run_must_name_the_damaged_file() -> None:
    of, lines = cell("state", command="report"), "aa01.json: damaged\nerm: 4/5 runs\nnext: run\n"
    assert judge(of, ending(1, lines), SOUND) is None
    assert "not named" in (judge(of, ending(1, "erm: 4/5 runs"), SOUND) or "")


@pytest.mark.parametrize("command", ["plan", "sync", "report of fewer"])
def test_commands_that_write_no_full_report_must_leave_the_report_unchanged(command: str) -> None:
    found = ending(changed={"provenance.json": "another time"})
    assert "provenance.json" in (judge(cell(command=command), found, SOUND) or "")


def test_only_run_and_report_must_rewrite_a_damaged_file_of_a_report() -> None:
    found = ending(file=REPORTS / GRID / "table.csv", changed={"table.csv": ""})
    for command, is_right in (("run", False), ("report", False), ("plan", True), ("sync", True)):
        of = cell("table.csv of the report", "missing", command)
        assert (judge(of, found, SOUND) is None) == is_right, command


def test_a_report_with_damaged_provenance_must_not_be_replaced() -> None:
    of = cell("provenance.json of the report", "empty", "report of fewer")
    damaged = {"provenance.json": ""}
    where = REPORTS / GRID / "provenance.json"
    good = ending(file=where, changed=damaged, beside={"table.csv": "of fewer"})
    assert judge(of, good, SOUND) is None
    overwritten = ending(file=where, changed={**damaged, "table.csv": "of fewer"})
    assert "table.csv" in (judge(of, overwritten, SOUND) or "")


def test_a_report_on_changed_images_may_move_the_earlier_report() -> None:
    replaced = dict.fromkeys(SOUND, "of other images")
    of = cell("image", "bit flipped", "run")
    assert judge(of, ending(changed=replaced, beside=SOUND), SOUND) is None
    assert judge(of, ending(changed=replaced), SOUND) is not None
    assert judge(cell(), ending(changed=replaced, beside=SOUND), SOUND) is not None


@pytest.mark.parametrize(
    ("code", "kind", "damage", "is_right"),
    [
        (1, "state", "truncated", True),
        (0, "state", "truncated", False),
        (0, "state", "missing", True),
        (0, "lease", "truncated", True),
    ],
)
def test_verify_must_detect_damage_to_files_with_a_sha256(
    code: int, kind: str, damage: str, is_right: bool
) -> None:
    found = ending(code, "states/aa/aa01-00.bin: damaged", file=Path("states/aa/aa01-00.bin"))
    assert (judge(cell(kind, damage, "verify"), found, SOUND) is None) == is_right
