"""The JSON Schema of a study file, for editors, generated from the types of its keys."""

import ast
import functools
import inspect
import re
import textwrap
from collections import ChainMap
from collections.abc import Mapping
from dataclasses import is_dataclass
from itertools import pairwise
from typing import Any, Literal, get_args, get_origin

from mixup_core.config.parts import REQUIRED, Leaf, Part, limits, members, parts, unmarked
from mixup_core.config.written_forms import Pairs, Under, short_form
from mixup_core.problem import DEFAULT_PROBLEM, PROBLEMS, Problem, problem_named
from sweeps.reading.grid_reader import ARM_NAME
from sweeps.reading.study_keys import KINDS, EntryKeys, SearchKeys, StudyKeys
from sweeps.reading.tree_paths import TreePaths, config_paths
from sweeps.study.claims import Claim
from sweeps.study.readouts import Readout

Schema = dict[str, Any]

_EXAMPLES = re.compile(r"\n+Examples?:\n(?:(?: .*)?(?:\n|$))*")
"""Section of a docstring with examples: its heading, and the indented and empty lines below it."""

_PLAIN: Mapping[Any, Schema] = {
    int: {"type": "integer"}, float: {"type": "number"}, bool: {"type": "boolean"},
    str: {"type": "string"}, type(None): {"type": "null"}, object: {},
}  # fmt: skip


def study_schema() -> Schema:
    """Return the JSON Schema of a study file.

    The schema describes names, types, allowed values and ranges of single values. Rules that
    involve several values are not in the schema; they are checked when a study is read. The content
    of `base`, `arms` and similar keys depends on the value of `problem`.
    """
    schema = _schema(StudyKeys)
    properties = schema["properties"]
    numbers = {"type": "object", "additionalProperties": {"type": "number"}}
    properties["claims"] |= _list(_schema(Claim))
    for name in ("references", "untrained"):
        properties[name] |= {"type": "object", "additionalProperties": numbers}
    cases, definitions = [], {"distribution": _entry()}
    for name in PROBLEMS:
        problem = problem_named(name)
        paths = config_paths(problem)
        definitions[name] = _mapping(
            {
                path: _without(_field(leaf.owner, leaf.part), _reserved_below(paths, path))
                for path, leaf in paths.leaves.items()
            }
        )
        is_named = {"properties": {"problem": {"const": name}}}
        is_meant = is_named | ({} if name == DEFAULT_PROBLEM else {"required": ["problem"]})
        cases.append({"if": is_meant, "then": {"properties": _sections(problem, paths)}})
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "mixsweep study"}
    return {**head, **schema, "allOf": cases, "$defs": definitions}


def _reserved_below(paths: TreePaths, path: str) -> set[str]:
    """Return the names of the fields directly below a path that study files may not set."""
    split = (reserved.rpartition(".") for reserved in paths.reserved)
    return {name for whole, _, name in split if whole == path}


def _without(schema: Schema, names: set[str]) -> Schema:
    """Return a schema without the properties of some names, here and in its alternatives."""
    reduced = dict(schema)
    if "anyOf" in schema:
        reduced["anyOf"] = [_without(part, names) for part in schema["anyOf"]]
    if "properties" in schema:
        inside = schema["properties"].items()
        reduced["properties"] = {key: _without(v, names) for key, v in inside if key not in names}
    return reduced


def _sections(problem: Problem, paths: TreePaths) -> Schema:
    """Return the schema of each section whose content depends on the problem, by key."""
    prefix = f"#/$defs/{problem.name}"
    values = {path: {"$ref": f"{prefix}/properties/{path}"} for path in paths.leaves}
    values |= {tagged: values[path] for tagged, (path, _) in paths.tagged.items()}
    axes = _mapping({path: _list(value) for path, value in values.items()}) | {"minProperties": 1}
    search, objective = _schema(SearchKeys), {"enum": list(problem.searching.objectives)}
    search["properties"]["objective"] |= {"anyOf": [objective, _list(objective)]}
    for budget in search["properties"]["budget"]["anyOf"]:
        budget.get("properties", {}).pop("runs", None)  # a search limits its points instead
    searched = config_paths(problem, searched=True)
    space = _mapping({path: _searched(leaf, values) for path, leaf in searched.leaves.items()})
    tagged = {name: space["properties"][path] for name, (path, _) in searched.tagged.items()}
    space["properties"] |= tagged
    search["properties"]["space"] |= {"minProperties": 1} | space
    base = _mapping({})
    for path, value in values.items():
        group, *heads, last = base, *paths.keys(path)
        for head in heads:
            group = group["properties"].setdefault(head, _mapping({}))
        group["properties"][last] = value
    base["properties"] |= values
    groups = {head: base["properties"][head] for head in base["properties"] if head in paths.groups}
    left_out = {path: {"anyOf": [value, _list(value)]} for path, value in values.items()}
    for path, leaf in paths.leaves.items():
        if leaf.part.is_named and path.count(".") == 1:
            whole = path.removesuffix(".name")
            for name, kind in leaf.part.options.items():
                fields = {part.name: f"{whole}.{part.name}" for part in parts(kind)}
                below = {field: values[full] for field, full in fields.items() if full in values}
                base["properties"][whole]["properties"].setdefault(name, _mapping(below))
    arms = {"type": "object", "minProperties": 1, "propertyNames": {"pattern": f"^{ARM_NAME}$"}}
    return {
        "base": base,
        "arms": arms | {"additionalProperties": _mapping(values | groups)},
        "grid": {"anyOf": [axes, _list(axes)]},
        "zip": axes,
        "sensitivity": _mapping(
            {path: _list(value) for path, value in values.items()}
            | {"readout": _list(_schema(Readout))}
        )
        | {"minProperties": 1},
        "exclude": _list(_mapping(left_out | groups) | {"minProperties": 1}),
        "search": search,
    }


def _searched(leaf: Leaf, values: Mapping[str, Schema]) -> Schema:
    """Return the schema of one searched field: a distribution, or a choice with its own fields."""
    if leaf.part.is_named or not leaf.part.options:
        return _distribution(values[leaf.path])
    kinds = []
    for tag, kind in leaf.part.options.items():
        names = [part.name for part in parts(kind) if f"{leaf.path}.{part.name}" in values]
        below = {name: values[f"{leaf.path}.{name}"] for name in names}
        fields = {name: {"anyOf": [_distribution(value), value]} for name, value in below.items()}
        alone = list(fields.values()) if len(fields) == 1 else []
        form = short_form(kind)
        tag = form.tag if isinstance(form, Under) else tag
        kinds.append(_mapping({tag: {"anyOf": [_mapping(fields), *alone]}}) | {"minProperties": 1})
    listed = _list({"anyOf": [{"enum": [*leaf.part.options, None]}, *kinds]})
    when: Schema = {"type": "object"}
    chosen = _mapping({"categorical": listed, "when": when}) | {"required": ["categorical"]}
    return {"anyOf": [*kinds, chosen]}


def _entry() -> Schema:
    """Return the schema of a distribution for values of any type."""
    entry = _schema(EntryKeys)
    for kind in ("log_uniform", "uniform", "int"):
        entry["properties"][kind] |= {"minItems": 2, "maxItems": 2}
    entry["properties"]["log_uniform"]["items"] = {"exclusiveMinimum": 0}
    return entry | {"oneOf": [{"required": [kind]} for kind in KINDS]}


def _distribution(value: Schema) -> Schema:
    """Return the schema of a distribution over values that match a schema."""
    return {"$ref": "#/$defs/distribution", "properties": {"categorical": _list(value)}}


def _schema(hint: Any) -> Schema:
    """Return the JSON Schema of values of a Python type, as written in study files."""
    if get_origin(hint) is Literal:
        return {"enum": list(get_args(hint))}
    if hint not in members(hint):
        return {"anyOf": [_schema(member) for member in members(hint)]}
    if hint != unmarked(hint):
        keywords = [limit.keywords for limit in limits(hint)]
        return dict(ChainMap(*keywords, _schema(unmarked(hint))))
    if get_origin(hint) is tuple:
        return {"type": "array", "items": _schema(get_args(hint)[0])}
    if not is_dataclass(hint):
        return dict(_PLAIN[hint])
    kind: Any = hint
    fields = {part.name: _field(kind, part) for part in parts(kind)}
    required = [part.name for part in parts(kind) if part.default is REQUIRED]
    about = {"description": _description(kind.__doc__ or "")}
    whole = _mapping(fields) | {"required": required}
    if hasattr(kind, "tag"):
        form = short_form(kind)
        alone = list(fields.values()) if len(fields) == 1 else []
        alone += [form.schema(whole)] if isinstance(form, Pairs) else []
        tagged = _mapping({kind.tag: {"anyOf": [whole, *alone]}}) | {"minProperties": 1}
        forms = [{"const": kind.tag}, *([tagged] if fields else [])]
        if form:
            forms = [form.schema(whole), *(old | {"deprecated": True} for old in forms)]
        return about | {"anyOf": forms}
    if isinstance(getattr(kind, "name", None), str):
        whole["properties"]["name"] = {"const": kind.name}
    return about | whole


def _field(kind: type, part: Part) -> Schema:
    about = {"description": text} if (text := _texts(kind).get(part.name)) else {}
    return _schema(part.hint) | about


@functools.cache
def _texts(kind: type) -> Mapping[str, str]:
    """Return the docstring of each field of a dataclass by name, including inherited fields."""
    texts: dict[str, str] = {}
    for base in filter(is_dataclass, kind.__bases__):
        texts |= _texts(base)
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    assert isinstance(definition, ast.ClassDef)
    return texts | {
        field.target.id: _description(text.value.value)
        for field, text in pairwise(definition.body)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant)
        and isinstance(text.value.value, str)
    }  # fmt: skip


def _description(docstring: str) -> str:
    """Return a docstring without indentation and without its examples."""
    return _EXAMPLES.sub("\n\n", inspect.cleandoc(docstring)).strip()


def _mapping(properties: Schema) -> Schema:
    return {"type": "object", "additionalProperties": False, "properties": properties}


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items, "minItems": 1}
