"""Meaning: digests of the code that an entry of a plugin file runs; they enter the keys of results.

Comments, docstrings, positions, line ends, and code that the entry does not reach leave a digest
unchanged. An entry reaches the statements of the file that bind its name, those that bind a name in
a reached statement (in its texts, too, as in `process="plugin:start"`), and every statement that
may change something else when the file is imported. If a file uses `exec`, `globals`, ... the code
that an entry reaches cannot be told, and the digest is that of the whole file.
"""

import ast
import builtins
import hashlib
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

_UNTRACEABLE_NAMES = {
    "__builtins__", "__doc__", "__file__", "__import__", "__loader__", "__spec__", "builtins",
    "compile", "ctypes", "dir", "eval", "exec", "gc", "globals", "importlib", "inspect",
    "linecache", "locals", "pickle", "sys", "traceback", "vars",
}  # fmt: skip
"""Names by which code can reach other code, its text, or its position."""
_UNTRACEABLE_PARTS = {
    "__closure__", "__code__", "__dict__", "__doc__", "__globals__", "__init_subclass__",
    "__module__", "__prepare__", "__set_name__", "__subclasses__", "catalogue", "metaclass",
}  # fmt: skip
"""Attributes, methods and keywords by which it can."""
_HARMLESS_MODULES = {
    "abc", "collections", "copy", "dataclasses", "enum", "fractions", "functools", "itertools",
    "math", "mixsweep", "mixup_core", "numbers", "numpy", "operator", "random", "re", "scipy",
    "statistics", "string", "time", "torch", "torchvision", "typing", "typing_extensions",
}  # fmt: skip
"""Packages whose import changes nothing that a plugin computes."""
_HARMLESS_CALLS = {
    "mixsweep": r"[A-Z]\w*",
    "dataclasses": r"dataclass|field",
    "typing": r"\w+",
    "collections": r"\w+",
    "enum": r"auto",
    "functools": r"cache|lru_cache|partial|cached_property|wraps",
    "math": r"\w+",
    "numpy": r"array|arange|linspace|zeros|ones|full|eye|asarray|float\d+|u?int\d+",
    "torch": r"no_grad|inference_mode|tensor|zeros|ones|arange|linspace",
    "builtins": (
        r"abs|bool|bytes|classmethod|complex|dict|divmod|enumerate|float|frozenset|int|len|list|"
        r"pow|property|range|reversed|round|set|slice|staticmethod|str|sum|super|tuple|zip"
    ),
}
"""Pattern of the functions, by package, whose call at import changes nothing else."""
_WORD = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True, kw_only=True, slots=True)
class _Unit:
    """A statement of a file, or one name of an import."""

    code: str
    binds: frozenset[str]
    mentions: frozenset[str]
    has_effect: bool
    """True if running it may change more than the names that it binds."""


class Meaning:
    """The parsed code of a plugin file."""

    def __init__(self, content: bytes) -> None:
        """Parse a file, which must be valid Python."""
        self._content = content
        self._tree = ast.parse(content)
        self._homes = dict(_homes(self._tree.body))

    @cached_property
    def untraceable(self) -> str | None:
        """The reason why digests are those of the whole file, as text; None if they are not."""
        for node in ast.walk(self._tree):
            found = set(_names(node)) & _UNTRACEABLE_NAMES
            parts = {getattr(node, field, "") for field in ("attr", "name", "arg")}
            found |= parts & _UNTRACEABLE_PARTS
            if isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
                found = {"import *"}
            if (
                isinstance(node, ast.Name)
                and node.id == "__name__"
                and not self._names_process(node)
            ):
                found = {"__name__"}
            if found:
                return f"line {getattr(node, 'lineno', 1)} uses `{min(found)}`"
        return None

    # Frozen: the digest of unchanged code, because keys depend on it. After a change, stored
    # results of plugins are not found; tests/mixup_core/plugins/test_meaning.py fails.
    def digest(self, names: Collection[str]) -> str:
        """Return the sha256 of all code that the entries of given names in the file reach."""
        bound = {name for unit in self._units for name in unit.binds}
        if self.untraceable is not None or not names or not set(names) <= bound:
            return hashlib.sha256(self._content).hexdigest()
        reached, kept = set(names), set[int]()
        while True:
            more = {
                number
                for number, unit in enumerate(self._units)
                if number not in kept and (unit.has_effect or unit.binds & reached)
            }
            if not more:
                break
            kept |= more
            reached |= {name for number in more for name in self._units[number].mentions}
        code = "\n".join(self._units[number].code for number in sorted(kept))
        return hashlib.sha256(code.encode()).hexdigest()

    def _names_process(self, name: ast.Name) -> bool:
        """Return True if `__name__` is used in a text such as f"{__name__}:start"."""
        for text in ast.walk(self._tree):
            match text:
                case ast.JoinedStr(
                    values=[ast.FormattedValue(value=used), ast.Constant(value=str(rest))]
                ) if used is name:
                    return rest.startswith(":")
        return False

    @cached_property
    def _units(self) -> list[_Unit]:
        return [unit for statement in self._tree.body for unit in self._units_of(statement)]

    def _units_of(self, statement: ast.stmt) -> Iterator[_Unit]:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            for alias in statement.names:
                one = (
                    ast.ImportFrom(statement.module, [alias], statement.level)
                    if isinstance(statement, ast.ImportFrom)
                    else ast.Import([alias])
                )
                package = _home(statement, alias).partition(".")[0]
                yield _Unit(
                    code=_dump(one),
                    binds=frozenset({_bound_by(alias)}),
                    mentions=frozenset(),
                    has_effect=package not in _HARMLESS_MODULES,
                )
        elif not _is_text(statement):
            yield _Unit(
                code=_dump(statement),
                binds=frozenset((*_bound(statement), *_tags(statement))),
                mentions=frozenset(_mentioned(statement)),
                has_effect=not self._is_harmless(statement),
            )

    def _is_harmless(self, statement: ast.stmt) -> bool:
        """Return True if running a statement changes nothing but the names that it binds."""
        match statement:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                of = statement.args
                own = [*of.posonlyargs, *of.args, *of.kwonlyargs, of.vararg, of.kwarg]
                hints = [statement.returns, *(each.annotation for each in own if each is not None)]
                run = [*of.defaults, *of.kw_defaults, *hints]
                decorators = statement.decorator_list
                return all(map(self._is_value, run)) and all(map(self._is_decorator, decorators))
            case ast.ClassDef():
                return (
                    not statement.keywords
                    and all(map(self._is_base, statement.bases))
                    and all(map(self._is_decorator, statement.decorator_list))
                    and all(map(self._is_harmless, statement.body))
                )
            case ast.Assign(targets=targets, value=value):
                return all(map(_is_plain, targets)) and self._is_value(value)
            case ast.AnnAssign(target=target, value=value, annotation=hint):
                return _is_plain(target) and self._is_value(value) and self._is_value(hint)
            case ast.Return(value=value):
                return self._is_value(value)
            case _:
                return isinstance(statement, ast.Pass) or _is_text(statement)

    def _is_decorator(self, decorator: ast.expr) -> bool:
        """Return True unless a decorator may store what it decorates, as code of the file can."""
        name, is_call = _root(decorator), isinstance(decorator, ast.Call)
        if is_call or (name and self._homes.get(name) not in {"", "class"}):
            return self._is_value(decorator)
        match [each for each in self._tree.body if name in _bound(each)]:
            case [ast.FunctionDef(body=body, decorator_list=[])] if isinstance(decorator, ast.Name):
                return all(map(self._is_harmless, body))
            case _:
                return False

    def _is_base(self, base: ast.expr) -> bool:
        name = _root(base)
        home = self._homes.get(name, "builtins" if hasattr(builtins, name) else "")
        return home.partition(".")[0] in {*_HARMLESS_MODULES, "builtins", "class"}

    def _is_value(self, node: ast.AST | None) -> bool:
        """Return True if evaluating an expression, or a part of one, changes nothing."""
        match node:
            case None | ast.Constant() | ast.Name():
                return True
            case ast.Lambda(args=of):
                return all(map(self._is_value, [*of.defaults, *of.kw_defaults]))
            case ast.Call(func=called, args=args, keywords=keywords):
                values = [*args, *(keyword.value for keyword in keywords)]
                return self._is_harmless_call(called) and all(map(self._is_value, values))
            case ast.NamedExpr() | ast.Await() | ast.Yield() | ast.YieldFrom():
                return False
            case _:
                return all(map(self._is_value, ast.iter_child_nodes(node)))

    def _is_harmless_call(self, called: ast.expr) -> bool:
        match called:
            case ast.Name(id=name):
                home = self._homes.get(name, f"builtins.{name}")
            case ast.Attribute(value=ast.Name(id=name), attr=attribute):
                home = f"{self._homes.get(name, '')}.{attribute}"
            case _:
                return False
        package, _, rest = home.partition(".")
        pattern = _HARMLESS_CALLS.get(package, "")
        return bool(pattern) and re.fullmatch(pattern, rest.rpartition(".")[2]) is not None


def _root(part: ast.expr) -> str:
    """Return the first name of a dotted name, such as `torch` of `torch.nn`; empty for others."""
    while isinstance(part, ast.Attribute):
        part = part.value
    return part.id if isinstance(part, ast.Name) else ""


def _homes(body: Iterable[ast.stmt]) -> Iterator[tuple[str, str]]:
    """Yield (name, what it names) for names that a file binds; empty if this cannot be told."""
    found: dict[str, set[str]] = {}
    for statement in body:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            for alias in statement.names:
                found.setdefault(_bound_by(alias), set()).add(_home(statement, alias))
        elif isinstance(statement, ast.ClassDef):
            found.setdefault(statement.name, set()).add("class")
        else:
            value = getattr(statement, "value", None)
            is_decorator = isinstance(value, ast.Call) and ast.unparse(value.func) in {
                "dataclass", "dataclasses.dataclass",
            }  # fmt: skip
            home = "dataclasses.dataclass" if is_decorator else ""
            for name in _bound(statement):
                found.setdefault(name, set()).add(home)
    for name, homes in found.items():
        yield name, homes.pop() if len(homes) == 1 else ""


def _home(statement: ast.Import | ast.ImportFrom, alias: ast.alias) -> str:
    """Return the dotted name bound by an import, such as `torch.nn`."""
    if module := getattr(statement, "module", None):
        return f"{module}.{alias.name}"
    return alias.name if alias.asname else alias.name.partition(".")[0]


def _bound_by(alias: ast.alias) -> str:
    return alias.asname or alias.name.partition(".")[0]


def _bound(statement: ast.stmt) -> Iterator[str]:
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield statement.name
        return
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.alias):
            yield _bound_by(node)


def _tags(statement: ast.stmt) -> Iterator[str]:
    """Yield the words of `tag = "..."` in a class, or `name="..."` in a call: they name it, too."""
    for node in ast.walk(statement):
        named = node.targets[0] if isinstance(node, ast.Assign) else node
        word, value = getattr(named, "id", getattr(named, "arg", "")), getattr(node, "value", None)
        if word in {"tag", "name"} and isinstance(value, ast.Constant):
            yield from _WORD.findall(str(value.value))


def _mentioned(node: ast.AST) -> Iterator[str]:
    """Yield all names in a statement, and all words of its texts except docstrings."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield from _WORD.findall(node.value)
    yield from _names(node)
    for below in ast.iter_child_nodes(node):
        if not (isinstance(below, ast.stmt) and _is_text(below)):
            yield from _mentioned(below)


def _names(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.Global):
        yield from node.names
    elif isinstance(node, ast.Import | ast.ImportFrom):
        yield from (getattr(node, "module", None) or "").split(".")
        yield from (word for alias in node.names for word in alias.name.split("."))


def _is_plain(target: ast.expr) -> bool:
    if isinstance(target, ast.Tuple | ast.List):
        return all(map(_is_plain, target.elts))
    return isinstance(target, ast.Name)


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _dump(node: object) -> str:
    """Return parsed code as text without positions and docstrings, the same in every Python."""
    if isinstance(node, list):
        kept = [each for each in node if not isinstance(each, ast.Pass)]
        return ",".join(_dump(each) for each in kept if not _is_text(each))
    if not isinstance(node, ast.AST):
        return f"{type(node).__name__} {node!r}"
    fields = [
        f"{name}=({_dump(value)})"
        for name, value in ast.iter_fields(node)
        if value not in (None, []) and name not in {"ctx", "kind", "type_comment"}
    ]
    return f"{type(node).__name__}({';'.join(fields)})"
