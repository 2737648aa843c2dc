"""Reference pages that are computed from the code: study files, problems, keys, bundled studies."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mixup_core.keys import paths_left_out
from mixup_core.problem import PROBLEMS, problem_named
from sweeps.reading.schema import study_schema
from sweeps.reading.study_file import bundled_names, load_study

Schema = Mapping[str, Any]


def write_pages(folder: Path) -> None:
    """Write every generated page below a folder, which is made if it is not there."""
    folder.mkdir(parents=True, exist_ok=True)
    schema = study_schema()
    pages = {
        "study-keys.md": "\n".join(_study_keys(schema)),
        "bundled-studies.md": "\n".join(_bundled_studies()),
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
    yield from ("| key | values | meaning |", "|---|---|---|")
    for key, value in schema["properties"].items():
        required = " (required)" if key in schema["required"] else ""
        yield f"| `{key}`{required} | {_values(value)} | {_text(value)} |"


def _problem(name: str, schema: Schema) -> Iterator[str]:
    """Yield the lines of one problem's page: what it computes, its fields and its metrics."""
    problem = problem_named(name)
    yield from (f"# Problem `{name}`", "", f"{problem.title[0].upper()}{problem.title[1:]}.", "")
    yield from ("## Fields", "", "| path | values | meaning |", "|---|---|---|")
    for path, value in schema["$defs"][name]["properties"].items():
        yield f"| `{path}` | {_values(value)} | {_text(value)} |"
    yield from ("", "## Metrics", "", "| metric | shown as | better |", "|---|---|---|")
    for metric, about in problem.metrics.items():
        better = "lower" if about.is_lower_better else "higher"
        yield f"| `{metric}` | {_cell(about.heading)} | {better} |"


def _bundled_studies() -> Iterator[str]:
    """Yield the lines of the table of bundled studies."""
    yield from ("| study | problem | runs | what it asks |", "|---|---|---|---|")
    for name in bundled_names():
        study = load_study(name)
        runs = "search" if study.search is not None else str(len(study.runs()))
        text = _cell(" ".join(study.description.split()))
        yield f"| `{name}` | `{study.problem.name}` | {runs} | {text} |"


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
        yield "`{" + ", ".join(f"{name}: ..." for name in names) + "}`" if names else "mapping"
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
