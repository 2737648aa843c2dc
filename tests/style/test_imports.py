"""Imports: private parts of other packages, and SQL, only for a stated reason."""

import ast
import re
from collections.abc import Iterator, Sequence

from tests.style.sources import CODE, ROOMS, name_of, nodes_of


def _private_parts(nodes: Sequence[ast.AST]) -> Iterator[str]:
    """Yield each private part of another package that code imports, names or passes."""
    names = set()
    for node in nodes:
        if isinstance(node, ast.Call):
            yield from (k.arg for k in node.keywords if k.arg and k.arg.startswith("_"))
        if not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        modules = [alias.name for alias in node.names]
        if isinstance(node, ast.ImportFrom):
            modules = [f"{node.module}.{name}" for name in modules]
        if modules[0].partition(".")[0] not in ROOMS:
            names |= {alias.asname or alias.name.partition(".")[0] for alias in node.names}
            yield from (path for path in modules if "._" in path)
    if names:  # in annotations that are texts, too
        pattern = rf"\b(?:{'|'.join(map(re.escape, names))})(?:\.\w+)*\._[a-z]\w*"
        yield from re.findall(pattern, ast.unparse(nodes[0]))


def test_private_parts_of_other_packages_are_used_only_with_a_stated_reason() -> None:
    """Python documents `os._exit` and `sys._current_frames`, and Ray its option `_temp_dir`."""
    for code in (
        "from ray._private import worker",
        "import ray._private.worker",
        "import ray\nray._private.worker.node",
        'import functools\nx: "functools._lru_cache_wrapper[int]"',
        "connect(_folder=1)",
    ):
        assert list(_private_parts(list(ast.walk(ast.parse(code))))), code
    found = {part for file in CODE for part in _private_parts(nodes_of(file))}
    assert found == {"os._exit", "sys._current_frames", "_temp_dir"}


def test_sql_is_only_in_the_two_modules_that_state_a_reason() -> None:
    """`docs/explanation/dependencies.md` lists every use of it beside MLflow's client."""
    found = {name_of(file) for file in CODE if "sqlite3" in file.read_text()}
    assert found == {"sweeps/machine/databases.py"}
