"""Reference pages that are computed from the code: study files, problems, keys, bundled studies."""

import inspect
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, get_args, get_origin

import click

from mixsweep.cli.main import commands
from mixsweep.cli.options import RARE
from mixsweep.cli.studies import catalogue
from mixup_core.config.catalogue import kind_name
from mixup_core.config.parts import REQUIRED, Part, members, parts, unmarked
from mixup_core.config.written_forms import spelled
from mixup_core.keys import paths_left_out
from mixup_core.problem import DEFAULT_PROBLEM, PROBLEMS, problem_named
from sweeps.reading.schema import study_schema
from sweeps.reading.study_file import load_study
from sweeps.reading.study_keys import EntryKeys, SearchKeys, StudyKeys
from sweeps.reading.tree_paths import config_paths
from sweeps.running.progress import spell_duration
from sweeps.study.claims import Claim

Schema = Mapping[str, Any]

ONLY_DEFAULT = {
    "sufficiency": {"data.views", "data.val_size", "data.folds", "data.fold", "data.oracle"}
}
"""Fields for which a rule of the problem allows only the default, by problem."""


def write_pages(folder: Path) -> None:
    """Write every generated page below a folder, which is made if it is not there."""
    folder.mkdir(parents=True, exist_ok=True)
    schema = study_schema()
    pages = {
        "study-keys.md": "\n".join(_study_keys(schema)),
        "section-keys.md": "\n".join(_section_keys(schema)),
        "bundled-studies.md": "\n".join(_bundled_studies()),
        "commands.md": "\n".join(_commands(commands, "mixsweep")),
        "left-out.md": "\n".join(_left_out()),
        "claims.md": _claims(folder.parents[2] / "reports" / "published" / "claims.md"),
    }
    pages |= {f"problem-{name}.md": "\n".join(_problem(name, schema)) for name in PROBLEMS}
    for name, text in pages.items():
        path = folder / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def _study_keys(schema: Schema) -> Iterator[str]:
    """Yield the lines of the table of a study file's top-level keys."""
    defaults = {part.name: part.default for part in parts(StudyKeys)}
    yield from _header("key")
    for key, value in schema["properties"].items():
        yield _row(key, value, _default(defaults[key]))


def _section_keys(schema: Schema) -> Iterator[str]:
    """Yield the lines of the table of the keys inside the sections of a study file."""
    top = schema["properties"]
    sections = schema["allOf"][list(PROBLEMS).index(DEFAULT_PROBLEM)]["then"]["properties"]
    yield from _header("key")
    yield from _nested_keys(StudyKeys, schema, "")
    yield from _keys(SearchKeys, sections["search"], "search.")
    yield from _keys(EntryKeys, schema["$defs"]["distribution"], "search.space.PATH.")
    yield from _keys(Claim, top["claims"]["items"], "claims.")


def _keys(kind: Any, schema: Schema, prefix: str) -> Iterator[str]:
    """Yield the rows of a dataclass's fields, and of the dataclasses in these fields.

    A field that is not in the schema has no row, because study files cannot set it.

    Args:
        kind: The dataclass.
        schema: JSON Schema of its values.
        prefix: Dotted path of the dataclass in a study file, with a dot at the end.
    """
    for part in parts(kind):
        if (value := schema["properties"].get(part.name)) is not None:
            yield _row(prefix + part.name, value, _default(part.default))
    yield from _nested_keys(kind, schema, prefix)


def _nested_keys(kind: Any, schema: Schema, prefix: str) -> Iterator[str]:
    for part in parts(kind):
        for inside in _dataclasses(part):
            names = {field.name for field in parts(inside)}
            found = _schema_with(names, schema["properties"][part.name]) if names else None
            if found is not None:
                tag = f"{inside.tag}." if hasattr(inside, "tag") else ""
                yield from _keys(inside, found, f"{prefix}{part.name}.{tag}")


def _dataclasses(part: Part) -> Iterator[Any]:
    """Yield the dataclasses that a field can hold, also as items of a list."""
    yield from filter(is_dataclass, map(unmarked, members(unmarked(part.hint))))
    yield from _item_dataclasses(part)


def _item_dataclasses(part: Part) -> Iterator[Any]:
    """Yield the dataclasses that a field can hold as items of a list."""
    for hint in map(unmarked, members(unmarked(part.hint))):
        if get_origin(hint) is tuple:
            yield from filter(is_dataclass, members(get_args(hint)[0]))


def _schema_with(names: set[str], schema: Schema) -> Schema | None:
    """Return the part of a schema that has most of the given names as properties, and no others.

    The result is None if there is no such part.
    """
    found = _schemas_within(names, schema)
    return max(found, key=lambda part: len(part["properties"]), default=None)


def _schemas_within(names: set[str], schema: Schema) -> Iterator[Schema]:
    inside = schema.get("properties", {})
    if inside and inside.keys() <= names:
        yield schema
    items = [schema["items"]] if "items" in schema else []
    for part in (*schema.get("anyOf", ()), *inside.values(), *items):
        yield from _schemas_within(names, part)


def _problem(name: str, schema: Schema) -> Iterator[str]:
    """Yield the lines of one problem's page: what it computes, its fields and its metrics."""
    problem = problem_named(name)
    yield from (f"# Problem `{name}`", "", f"{problem.title[0].upper()}{problem.title[1:]}.", "")
    yield from ("## Fields", "", *_header("path"))
    defaults = sorted(_defaults(problem.config), key=lambda each: each[0])
    texts = {path: _text_of(each) for path, each in groupby(defaults, key=lambda each: each[0])}
    leaves = config_paths(problem).leaves
    for path, value in schema["$defs"][name]["properties"].items():
        is_fixed = path in ONLY_DEFAULT.get(name, ())
        yield _row(path, value, texts[path], texts[path] if is_fixed else "")
        yield from _item_keys(leaves[path].part, value, f"{path}.")
    yield from ("", "## Metrics", "", "| metric | shown as | better |", "|---|---|---|")
    for metric, about in problem.metrics.items():
        better = "lower" if about.is_lower_better else "higher"
        yield f"| `{metric}` | {_cell(about.heading)} | {better} |"


def _item_keys(part: Part, schema: Schema, prefix: str) -> Iterator[str]:
    """Yield the rows of the fields of a list's items; a field that several items have is one row.

    Args:
        part: The field that holds the list.
        schema: JSON Schema of its values.
        prefix: Dotted path of the list, with a dot at the end.
    """
    values: dict[str, Schema] = {}
    defaults: dict[str, list[tuple[str, str, str]]] = {}
    for inside in _item_dataclasses(part):
        found = _schema_with({field.name for field in parts(inside)}, schema)
        if found is None:
            continue  # a dataclass without fields
        for field in parts(inside):
            values.setdefault(field.name, found["properties"][field.name])
            default = (field.name, kind_name(inside), _default(field.default))
            defaults.setdefault(field.name, []).append(default)
    for name, value in values.items():
        yield _row(prefix + name, value, _text_of(iter(defaults[name])))


def _defaults(kind: Any, prefix: str = "", choice: str = "") -> Iterator[tuple[str, str, str]]:
    """Yield path, choice and default of each field of a configuration type.

    Args:
        kind: The dataclass.
        prefix: Dotted path of the dataclass, with a dot at the end; empty for the configuration.
        choice: Tag or name that selects the dataclass; empty if it is always present.
    """
    for part in parts(kind):
        if not part.is_group:
            is_name = part.is_named and part.default not in {None, REQUIRED}
            default = kind_name(type(part.default)) if is_name else part.default
            yield f"{prefix}{part.kind_path}", choice, _default(default)
        inside = {choice: part.hint} if part.is_group else part.options
        for name, each in inside.items():
            yield from _defaults(each, f"{prefix}{part.name}.", name)


def _text_of(each: Iterator[tuple[str, str, str]]) -> str:
    """Return the default of a field that several dataclasses of a choice can have.

    For example `0.0` with `adam`, `sgd`; `0.01` with `adamw`.
    """
    choices: dict[str, list[str]] = {}
    for _, choice, default in each:
        choices.setdefault(default, []).append(choice)
    (first, names), *others = choices.items()
    if "" in names or (not others and first != _default(REQUIRED)):
        return first
    return "; ".join(
        f"{default} with {', '.join(f'`{name}`' for name in names)}"
        for default, names in choices.items()
    )


def _header(first: str) -> tuple[str, str]:
    return f"| {first} | values | default | meaning |", "|---|---|---|---|"


def _row(path: str, schema: Schema, default: str, values: str = "") -> str:
    """Return a row of a table of fields; `values` replaces the values that the schema allows."""
    return f"| `{path}` | {values or _values(schema)} | {default} | {_text(schema)} |"


def _default(value: Any) -> str:
    """Return a default in the notation of study files; `required` if there is none."""
    return "required" if value is REQUIRED else _cell(f"`{json.dumps(spelled(value))}`")


def _bundled_studies() -> Iterator[str]:
    """Yield the lines of the tables of bundled studies, one table per question."""
    for question, names in groupby(listed := catalogue(), lambda name: listed[name].question):
        yield from ("", f"## {question}", "", "| study | runs | training | what it asks |")
        yield "|---|---|---|---|"
        for name in names:
            study, seconds = load_study(name), listed[name].seconds
            runs = "search" if study.search is not None else str(len(study.runs()))
            time = "not measured" if seconds is None else spell_duration(seconds)
            text = _cell(" ".join(study.description.split()))
            yield f"| `{name}` | {runs} | {time} | {text} |"


def _commands(command: click.Command, words: str) -> Iterator[str]:
    """Yield the lines of the reference of a command and of the commands below it."""
    if isinstance(command, click.Group):
        for name, below in sorted(command.commands.items()):
            yield from _commands(below, f"{words} {name}")
        return
    context = click.Context(command, info_name=words)
    usage = " ".join(command.collect_usage_pieces(context))
    yield from ("", f"## {words}", "", f"`{words} {usage}`", "")
    yield from inspect.cleandoc(command.help or "").splitlines()
    yield from ("", "| option | meaning |", "|---|---|")
    options = [option for option in command.params if isinstance(option, click.Option)]
    for option in sorted(options, key=lambda option: not RARE.isdisjoint(option.opts)):
        record = option.get_help_record(context)
        if record is not None:
            kind = " (rarely needed)" if not RARE.isdisjoint(option.opts) else ""
            yield f"| `{_cell(record[0])}` | {_cell(record[1])}{kind} |"
    yield "| `--help` | Show the help of this command. |"


def _left_out() -> Iterator[str]:
    """Yield the lines of the table of all paths that leave keys, with their reasons."""
    yield from ("| problem | path | leaves | reason |", "|---|---|---|---|")
    for name, path, keys, reason in paths_left_out():
        yield f"| `{name}` | `{path}` | {keys} | {_cell(' '.join(reason.split()))} |"


def _claims(index: Path) -> str:
    """Return the published index of claims; links to folders beside it become names."""
    return re.sub(r"\[([^]]+)\]\((?!http)[^)]+\)", r"`\1`", index.read_text(encoding="utf-8"))


def _values(schema: Schema) -> str:
    """Return the values that a JSON Schema allows, in a few words."""
    return _cell(" or ".join(dict.fromkeys(_alternatives(schema))))


def _alternatives(schema: Schema) -> Iterator[str]:
    if "anyOf" in schema:
        for part in schema["anyOf"]:
            yield from _alternatives(part)
        return
    if "const" in schema:
        yield f"`{json.dumps(schema['const'])}`"
    elif "enum" in schema:
        yield from (f"`{json.dumps(value)}`" for value in schema["enum"])
    elif schema.get("type") == "array":
        inner = " or ".join(dict.fromkeys(_alternatives(schema["items"])))
        yield f"list of {inner}"
    elif schema.get("type") == "object":
        names = schema.get("properties", {})
        is_short = 0 < len(names) <= 12
        yield "`{" + ", ".join(f"{name}: ..." for name in names) + "}`" if is_short else "mapping"
    elif "type" in schema:
        limits = [
            f"{sign} {schema[key]}"
            for key, sign in (
                ("minimum", ">="), ("exclusiveMinimum", ">"),
                ("maximum", "<="), ("exclusiveMaximum", "<"),
            )
            if key in schema
        ]  # fmt: skip
        yield " ".join([schema["type"], ", ".join(limits)]).strip()
    else:
        yield "see below"


def _text(schema: Schema) -> str:
    return _cell(" ".join(schema.get("description", "").split()))


def _cell(text: str) -> str:
    """Return a text that is safe in a cell of a Markdown table."""
    return text.replace("|", "\\|").replace("<", "&lt;")
