"""Names: a class or type alias of a name is defined in one module only."""

import ast
from collections import defaultdict

from tests.style.sources import CODE, name_of, nodes_of

VARIANTS = {
    "Array": "an array of the type that a module computes with",
    "Labels": "an array of class indices",
}
"""Names that several modules define, with the reason why they mean the same."""


def _defined(tree: ast.AST) -> set[str]:
    """Return the public classes and type aliases of a module."""
    found = {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
    for node in tree.body:
        if isinstance(node, ast.Assign) and not isinstance(node.value, ast.Call):
            found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return {name for name in found if name[0].isupper() and not name.isupper()}


def test_no_two_modules_define_a_class_or_a_type_of_the_same_name() -> None:
    modules = defaultdict(set)
    for file in CODE:
        for name in _defined(nodes_of(file)[0]) - VARIANTS.keys():
            modules[name].add(name_of(file))
    assert {name: files for name, files in modules.items() if len(files) > 1} == {}
