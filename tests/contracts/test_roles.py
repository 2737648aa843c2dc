"""Roles of arms: a point and a confirmation are fields of a study, never read from a name."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from sweeps.study.added_arm import AddedArm, added_among, name_of_confirmation, name_of_point

ROOT = Path(__file__).parents[2]
PLACE = ROOT / "sweeps" / "study" / "added_arm.py"
READER = ROOT / "reports" / "pages" / "shelf.py"
"""The module that reads arms from a stored file, which holds names alone."""
CODE = [
    file
    for folder in ("mixup_core", "sweeps", "reports", "mixsweep", "cluster")
    for file in sorted((ROOT / folder).rglob("*.py"))
    if file != PLACE
]
PREFIXES = tuple(name.removesuffix("0") for name in (name_of_point(0), name_of_confirmation("0")))
QUESTIONS = {"startswith", "removeprefix", "partition", "split", "index", "find"}
LEGENDS = {
    "reports/numbers/responses.py": ["arm.split"],
    "sweeps/reading/claims_reader.py": ["arm.partition"],
}
"""Questions about names that find the words which the names of several arms share, for a legend or
a hint.
"""


def _of_names(code: str) -> Iterator[str]:
    """Yield each text that ends in a prefix of a role, and each question about the name of an arm.

    A question about a name is a method such as `startswith`, called on a name or field `arm`.
    """
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Constant) and str(node.value).endswith(PREFIXES):
            yield repr(node.value)
        is_question = isinstance(node, ast.Attribute) and node.attr in QUESTIONS
        if is_question and ast.unparse(node.value).rpartition(".")[2] in {"arm", "teacher_arm"}:
            yield ast.unparse(node)


@pytest.mark.parametrize(
    "code",
    ['f"point {number}"', 'CONFIRM = "confirm "', 'run.arm.startswith("p")', "arm.split()[0]"],
)
def test_the_check_detects_code_that_reads_a_role_from_an_arm_name(code: str) -> None:
    assert list(_of_names(code))


def test_no_code_reads_the_role_of_an_arm_from_its_name() -> None:
    found = {str(file.relative_to(ROOT)): list(_of_names(file.read_text())) for file in CODE}
    assert {file: names for file, names in found.items() if names} == LEGENDS


def test_only_the_reader_of_stored_files_parses_names_of_added_arms() -> None:
    found = [file for file in CODE if added_among.__name__ in file.read_text()]
    assert found == [READER]


def test_added_arms_are_found_among_the_names_of_a_stored_file() -> None:
    added = [name_of_point(0), name_of_point(12), name_of_confirmation("erm")]
    added.append(name_of_confirmation(name_of_point(12)))
    fixed = ["erm", "point", "confirm", "point law=erm", "confirm epochs=2", "pointed 1"]
    assert added_among(fixed + added) == set(added)


def test_an_added_arm_is_a_point_unless_it_confirms_an_arm() -> None:
    assert AddedArm(seeds=(0,)).is_point
    assert not AddedArm(seeds=(0,), confirms="erm").is_point
