"""Names: a class or type alias of a name is defined in one module only."""

import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROOMS = ("mixup_core", "sweeps", "reports", "cluster")

VARIANTS = {
    "Array": "an array of the type that a module computes with",
    "Indices": "an array of integers",
    "Labels": "an array of class indices",
}
"""Names that several modules define, with the reason why they mean the same."""


def _defined(tree: ast.Module) -> set[str]:
    """Return the public classes and type aliases of a module."""
    found = {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
    for node in tree.body:
        if isinstance(node, ast.Assign) and not isinstance(node.value, ast.Call):
            found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return {name for name in found if name[0].isupper() and not name.isupper()}


def test_no_two_modules_define_a_class_or_a_type_of_the_same_name() -> None:
    modules = defaultdict(set)
    for room in ROOMS:
        for file in (ROOT / room).rglob("*.py"):
            for name in _defined(ast.parse(file.read_text(encoding="utf-8"))) - VARIANTS.keys():
                modules[name].add(str(file.relative_to(ROOT)))
    assert {name: files for name, files in modules.items() if len(files) > 1} == {}


def _variables(tree: ast.Module) -> set[str]:
    """Return the names that a module assigns, parameters included."""
    targets = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and not _is_read(n)}
    return targets | {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}


def _is_read(name: ast.Name) -> bool:
    return isinstance(name.ctx, ast.Load)


def test_no_variable_is_named_problems() -> None:
    found = [
        str(file.relative_to(ROOT))
        for room in ROOMS
        for file in (ROOT / room).rglob("*.py")
        if "problems" in _variables(ast.parse(file.read_text(encoding="utf-8")))
    ]
    assert found == [], "a problem is what a study trains"
