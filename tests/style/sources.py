"""Source files of the project, each read and parsed only once."""

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROOMS = ("mixup_core", "sweeps", "reports", "mixsweep", "cluster")
CODE = sorted(file for room in ROOMS for file in (ROOT / room).rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))


@cache
def nodes_of(file: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(ast.parse(file.read_text(encoding="utf-8"))))


def name_of(file: Path) -> str:
    return str(file.relative_to(ROOT))
