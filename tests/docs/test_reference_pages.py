"""Reference pages: the values, defaults and meaning of every field, as the code has them."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from docs.reference_pages import write_pages
from mixup_core.config.parts import REQUIRED, places
from mixup_core.config.written_forms import defaults, flatten
from mixup_core.problem import PROBLEMS, problem_named
from sweeps.reading.study_file import study_of
from sweeps.reading.tree_paths import config_paths
from sweeps.study.study import Study

ROOT = Path(__file__).parents[2]
NEEDED = {"images": {"epochs": 4, "batch_size": 50}}
"""Fields without a default that a study of each problem must give."""


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with all generated pages."""
    folder = tmp_path_factory.mktemp("docs") / "docs" / "reference" / "_generated"
    published = folder.parents[2] / "reports" / "published"
    published.mkdir(parents=True)
    (published / "claims.md").write_text("# Claims\n")
    write_pages(folder)
    return folder


def _rows(page: Path) -> dict[str, list[str]]:
    """Return the cells after the path of each row of a page's tables of fields, by path."""
    found = {}
    for line in page.read_text().splitlines():
        if line.startswith("| `"):
            first, *cells = (cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1])
            if len(cells) == 3:
                found[first.strip("`")] = cells
    return found


def _by_choice(default: str) -> dict[str, str]:
    """Return the defaults in a cell by the option that they belong to; "" for every option."""
    found = {}
    for part in default.split("; "):
        value, _, names = part.partition(" with ")
        found |= {name.strip("`"): value for name in names.split(", ")}
    return found


def _study(problem: str, base: dict[str, Any]) -> Study:
    return study_of({"study": "written", "problem": problem, "base": base, "seeds": 1})


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_problem_lists_exactly_the_fields_that_a_study_file_can_set(
    name: str, pages: Path
) -> None:
    paths = config_paths(problem_named(name))
    settable = places(problem_named(name).config) - paths.reserved.keys() - paths.groups
    rows = _rows(pages / f"problem-{name}.md")
    assert rows.keys() == settable
    assert paths.leaves.keys() <= settable
    for path, (values, default, _) in rows.items():
        assert values, path
        shown = list(_by_choice(default).values())
        assert all(text == "required" or re.fullmatch("`.+`", text) for text in shown), path


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_study_that_writes_every_shown_default_is_the_study_without_them(
    name: str, pages: Path
) -> None:
    plain = _study(name, NEEDED.get(name, {})).runs()[0].config
    kept, missing = flatten(plain), defaults(plain)
    chosen = {str(value) for value in kept.values()}
    written: dict[str, Any] = {}
    for path, (_, default, _) in _rows(pages / f"problem-{name}.md").items():
        if path not in kept:
            continue  # a field of an option that is not the default
        shown = _by_choice(default)
        text = shown[""] if "" in shown else next(shown[tag] for tag in shown if tag in chosen)
        if text == "required":
            assert missing[path] is REQUIRED, path
        else:
            written[path] = json.loads(text.strip("`").replace("&lt;", "<"))
    assert written
    assert _study(name, NEEDED.get(name, {}) | written).runs()[0].config == plain
