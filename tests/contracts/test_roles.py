"""Roles of arms: a point and a confirmation are fields of a study, never read from a name."""

import ast
import re
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
QUESTIONS = {"startswith", "removeprefix", "partition", "rpartition", "split", "index", "find"}
LEGENDS = {
    "reports/numbers/responses.py": ["arm.split"],
    "sweeps/reading/claims_reader.py": ["name.partition(' ')"],
}
"""Questions about names that find the words which the names of several arms share, for a legend, or
the first word of a wrong name in a study file, for a hint.
"""
OTHER_TEXTS = {
    "reports/numbers/provenance.py": ["environment.get('settings', '').split(' ')"],
    "reports/tables/captions.py": ["phrase.split(' ')"],
    "mixsweep/cli/why.py": [
        "text.split(' ', 2)",
        "stage.environment.get(TRIED, '').partition(' ')",
    ],
    "sweeps/machine/members.py": ["line.partition(' ')"],
    "sweeps/state/results.py": ["stage.environment.get(TRIED, '').partition(' ')"],
    "sweeps/state/statements.py": ["name.startswith('settings of ')"],
    "sweeps/tracking/logged_run.py": ["text[:MAX_TAG].rpartition(' ')"],
}
"""Questions about words of texts that are not names of arms."""


def _of_names(code: str) -> Iterator[str]:
    """Yield each text that ends in a prefix of a role, and each question about the name of an arm.

    A question about a name is a method such as `startswith`, called on a name or field `arm`, or
    called on any text with an argument that begins or ends in a space: a space separates an arm's
    name in the study file from its grid point.
    """
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Constant) and str(node.value).endswith(PREFIXES):
            yield repr(node.value)
        is_question = isinstance(node, ast.Attribute) and node.attr in QUESTIONS
        if is_question and ast.unparse(node.value).rpartition(".")[2] in {"arm", "teacher_arm"}:
            yield ast.unparse(node)
        is_call = isinstance(node, ast.Call) and getattr(node.func, "attr", "") in QUESTIONS
        if is_call and any(map(_is_spaced, node.args)):
            yield ast.unparse(node)


def _is_spaced(argument: ast.expr) -> bool:
    """Return whether an argument is a text, or tuple of texts, with a space at its start or end.

    Such a text is one space, or a space beside a letter or a digit: not the `", "` of a list.
    """
    if isinstance(argument, ast.Tuple):
        return any(map(_is_spaced, argument.elts))
    parts = argument.values if isinstance(argument, ast.JoinedStr) else [argument]
    ends = [part.value for part in (*parts[:1], *parts[-1:]) if isinstance(part, ast.Constant)]
    return any(re.search(r"^ (\w|$)|(^|\w) $", str(end)) for end in ends)


@pytest.mark.parametrize(
    "code",
    [
        'f"point {number}"',
        'CONFIRM = "confirm "',
        'run.arm.startswith("p")',
        "arm.split()[0]",
        'next(name for name in arms if name.startswith(f"{usual} "))',
        'name.partition(" ")[0]',
        'name.startswith(("erm ", "midpoint "))',
    ],
)
def test_the_check_detects_code_that_reads_a_role_from_an_arm_name(code: str) -> None:
    assert list(_of_names(code))


def test_no_code_reads_the_role_of_an_arm_from_its_name() -> None:
    found = {
        str(file.relative_to(ROOT)): list(dict.fromkeys(_of_names(file.read_text())))
        for file in CODE
    }
    assert {file: names for file, names in found.items() if names} == LEGENDS | OTHER_TEXTS


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
