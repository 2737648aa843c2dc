"""Roles of arms: a point and a confirmation are fields of a study, never read from a name."""

import ast
from collections.abc import Iterable, Iterator

from sweeps.study.search import added_among, name_of_confirmation, name_of_point
from tests.style.sources import CODE, ROOT, nodes_of

PLACE = ROOT / "sweeps" / "study" / "search.py"
READER = ROOT / "reports" / "pages" / "report_folders.py"
"""The module that reads arms from a stored file, which holds names alone."""
PREFIXES = tuple(name.removesuffix("0") for name in (name_of_point(0), name_of_confirmation("0")))
QUESTIONS = {"startswith", "removeprefix", "partition", "rpartition", "index", "find"}
"""Methods that look for a role in a name. `split` finds the words that names share, for legends."""


def _of_names(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Yield each text that ends in a prefix of a role, and each question about an arm's name."""
    for node in nodes:
        if isinstance(node, ast.Constant) and str(node.value).endswith(PREFIXES):
            yield repr(node.value)
        is_question = isinstance(node, ast.Attribute) and node.attr in QUESTIONS
        if is_question and ast.unparse(node.value).rpartition(".")[2] in {"arm", "teacher_arm"}:
            yield ast.unparse(node)


def test_no_code_reads_the_role_of_an_arm_from_its_name() -> None:
    for code in ('f"point {number}"', 'CONFIRM = "confirm "', 'run.arm.startswith("p")'):
        assert list(_of_names(ast.walk(ast.parse(code))))
    found = {
        str(file.relative_to(ROOT)): list(_of_names(nodes_of(file)))
        for file in CODE
        if file != PLACE
    }
    assert {file: names for file, names in found.items() if names} == {}


def test_only_the_reader_of_stored_files_parses_names_of_added_arms() -> None:
    found = [file for file in CODE if added_among.__name__ in file.read_text()]
    assert found == [READER, PLACE]
