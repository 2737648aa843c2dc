"""Reference pages: the values, defaults and meaning of every field, as the code has them."""

import importlib.util
import json
import re
from collections.abc import Iterator
from dataclasses import is_dataclass
from functools import reduce
from operator import getitem
from pathlib import Path
from types import ModuleType
from typing import Any, get_args, get_origin

import jsonschema  # type: ignore[import-untyped]
import pytest
import yaml
from PIL import Image

from mixup_core.config.parts import REQUIRED, members, parts, places, unmarked
from mixup_core.config.written_forms import defaults, flatten
from mixup_core.problem import PROBLEMS, problem_named
from sweeps.reading.schema import study_schema
from sweeps.reading.study_file import StudyError, study_of
from sweeps.reading.study_keys import EntryKeys, SearchKeys, StudyKeys
from sweeps.reading.tree_paths import config_paths
from sweeps.study.claims import Claim
from sweeps.study.study import Study
from tests.single_changes import FIXED, changed, configurations

ROOT = Path(__file__).parents[2]
NEEDED = {"images": {"epochs": 4, "batch_size": 50}}
"""Fields without a default that a study of each problem must give."""


def _pages_module() -> ModuleType:
    found = importlib.util.spec_from_file_location(
        "reference_pages", ROOT / "docs" / "reference_pages.py"
    )
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with all generated pages."""
    folder = tmp_path_factory.mktemp("docs") / "docs" / "reference" / "_generated"
    published = folder.parents[2] / "reports" / "published"
    published.mkdir(parents=True)
    (published / "claims.md").write_text("# Claims\n")
    _pages_module().write_pages(folder)
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


def _value(text: str) -> Any:
    return json.loads(text.strip("`").replace("&lt;", "<"))


def _study(problem: str, base: dict[str, Any]) -> Study:
    return study_of({"study": "written", "problem": problem, "base": base, "seeds": 1})


@pytest.mark.parametrize("name", PROBLEMS)
def test_every_field_of_a_problem_has_a_default_or_is_required(name: str, pages: Path) -> None:
    rows = _rows(pages / f"problem-{name}.md")
    for path, (values, default, _) in rows.items():
        assert values, path
        shown = list(_by_choice(default).values())
        assert all(text == "required" or re.fullmatch("`.+`", text) for text in shown), path


def test_every_row_of_every_generated_table_has_a_text_in_each_cell(pages: Path) -> None:
    """The last cell of a field is its meaning."""
    count = 0
    for page in sorted(pages.glob("*.md")):
        for line in page.read_text().splitlines():
            if line.startswith("|"):
                cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
                assert all(cells), f"{page.name}: {line}"
                count += 1
    assert count > 1_000


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_problem_lists_exactly_the_fields_that_a_study_file_can_set(
    name: str, pages: Path
) -> None:
    paths = config_paths(problem_named(name))
    settable = places(problem_named(name).config) - paths.reserved.keys() - paths.groups
    rows = _rows(pages / f"problem-{name}.md")
    assert rows.keys() == settable
    assert paths.leaves.keys() <= settable


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_field_with_a_single_valid_value_is_listed_with_this_value_alone(
    name: str, pages: Path
) -> None:
    rows = _rows(pages / f"problem-{name}.md")
    alone = {path for path, (values, default, _) in rows.items() if values == default}
    ranges = {path for path, (values, *_) in rows.items() if values == "integer >= 1, &lt;= 1"}
    assert alone | ranges == FIXED.get(name, set())


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
            written[path] = _value(text)
    assert written
    study = study_of(
        {
            "study": "written",
            "problem": name,
            "base": NEEDED.get(name, {}),
            "arms": {"written": written},
            "seeds": 1,
        }
    )
    assert study.runs()[0].config == plain


def test_three_shown_defaults_equal_the_values_of_a_loaded_study(pages: Path) -> None:
    rows = _rows(pages / "problem-images.md")
    config: Any = _study("images", NEEDED["images"]).runs()[0].config
    assert _value(rows["optimizer.lr"][1]) == config.optimizer.lr == 0.001
    assert _value(rows["eval_every"][1]) == config.eval_every == 1
    assert _value(rows["mix.lam_scope"][1]) == config.mix.lam_scope == "batch"
    assert rows["epochs"][1] == "required"


def test_defaults_that_differ_between_options_name_them(pages: Path) -> None:
    rows = _rows(pages / "problem-images.md")
    assert rows["optimizer.weight_decay"][1] == "`0.0` with `adam`, `sgd`; `0.01` with `adamw`"
    assert rows["mix.law.alpha"][1] == "required with `beta`, `truncated`"


def test_every_key_of_a_study_file_has_a_default_or_is_required(pages: Path) -> None:
    rows = _rows(pages / "study-keys.md")
    assert list(rows) == list(StudyKeys.__dataclass_fields__)
    assert rows["seeds"][1] == rows["base"][1] == "required"
    assert rows["readout"][1] == '`"last"`'
    inside = _rows(pages / "section-keys.md")
    assert all(default for _, default, _ in inside.values())
    assert inside["search.sampler"][1] == '`"tpe"`'
    assert inside["seeds.at_most"][:2] == ["integer >= 2, &lt;= 10000", "required"]
    assert {"budget.hours", "claims.that.metric", "readout.mean_of_last.evaluations"} <= set(inside)


SMALL = """
study: s
base:
  data: {name: digits, val_size: 200}
  model: {name: mlp}
  epochs: 20
  batch_size: 128
arms:
  erm: {mix.law: erm}
  uniform: {mix.law: {beta: 1.0}}
"""
CLAIMS = """
claims:
  - {says: A sentence., source: A paper., that: {metric: test/error, less: [uniform, erm]}}
"""
STUDIES = [
    """
problem: images
description: A question.
seeds: 3
baseline: uniform
headline: test/nll
equivalence: 0.01
readout: {mean_of_last: {evaluations: 2}}
references: {erm: {test/error: 0.1}}
untrained: {cutmix: {test/error: 0.1}}
differs: [Fewer images are used.]
budget: {hours: 1, gpu_hours: 2, runs: 3}
""",
    """
seeds: 3
readout: {early_stopping: {patience: 2}}
grid: {optimizer.lr: [0.001, 0.01]}
zip: {model.hidden: [[32], [64]], batch_size: [64, 128]}
exclude: [{optimizer.lr: 0.01, batch_size: 128}]
""",
    """
seeds: 3
claims:
  - {says: A, source: B, that: {metric: test/error, greater: [erm, uniform], factor: 2}}
  - {says: C, source: D, that: {metric: test/nll, less: [erm, uniform], of: variance}}
  - {says: A, source: B, that: {metric: test/error, at_least: [erm, uniform], margin: 0.01}}
  - {says: A, source: B, that: {metric: test/error, at_most: [erm, uniform], margin: 0.01}}
  - {says: A, source: B, that: {metric: test/error, within: [erm, uniform], margin: 0.01}}
  - {says: A, source: B, that: {metric: test/error, less: [erm, uniform],
     readout: {mean_of_last: {evaluations: 2}}}}
  - {says: A, source: B, that: {metric: test/error, less: [erm, uniform],
     readout: {early_stopping: {patience: 2}}}}
  - {says: A, source: B, that: {metric: predicted/accuracy, less: [erm, uniform], together: [erm],
     networks: 2}}
sensitivity: {epochs: [10]}
""",
    f"""
seeds: {{at_least: 2, at_most: 6, until: decided, looks: 3, spending: 0.4, futility: 0.2}}
{CLAIMS}
""",
    """
seeds: 3
search:
  space:
    optimizer.name: {categorical: [adam, sgd]}
    optimizer.momentum: {uniform: [0.0, 0.9], when: {optimizer.name: sgd}}
    optimizer.lr: {log_uniform: [0.0001, 0.01]}
    mix.switch_epoch: {int: [0, 20], step: 2}
  objective: val/error
  points: 6
  sampler: random
  seed: 1
  prune: {after: 2, every: 1}
  budget: {hours: 1, gpu_hours: 2}
  stop: {after: 4}
  warm_start: true
  select: val-1se
  confirm: {seeds: [7]}
""",
    """
seeds: 3
search:
  space: {optimizer.lr: {log_uniform: [0.0001, 0.01], values: 3}}
  objective: val/error
  sampler: grid
""",
]
"""Continuations of `SMALL`: studies that together set every key."""
REFUSED = {"search.budget.runs": "budget.runs must be absent in a search"}
"""Fields of the keys' dataclasses that a rule always refuses, with the message."""


def _set_keys(written: Any, prefix: str = "") -> Iterator[str]:
    """Yield the keys that a part of a study file sets, named like the rows of the reference."""
    for key, value in written.items() if isinstance(written, dict) else ():
        if prefix == "search.space.":
            yield from _set_keys(value, f"{prefix}PATH.")
            continue
        yield f"{prefix}{key}"
        if prefix or key in {"seeds", "budget", "readout", "search", "claims"}:
            yield from _set_keys(value, f"{prefix}{key}.")
    for item in written if isinstance(written, list) else ():
        yield from _set_keys(item, prefix)


def test_every_listed_key_is_set_in_a_study_that_the_reader_accepts(pages: Path) -> None:
    found: set[str] = set()
    for more in STUDIES:
        written = yaml.safe_load(SMALL + more)
        assert study_of(written).arms
        found |= set(_set_keys(written))
    listed = _rows(pages / "study-keys.md").keys() | _rows(pages / "section-keys.md").keys()
    assert listed - found == {"plugins"}, "only a study file may name plugins"


def _fields(kind: Any, prefix: str) -> Iterator[str]:
    """Yield the dotted path of each field of a dataclass and of the dataclasses in its fields."""
    for part in parts(kind):
        yield f"{prefix}{part.name}"
        hints = [*members(unmarked(part.hint))]
        for hint in hints:
            inside: Any = unmarked(hint)
            hints += members(get_args(inside)[0]) if get_origin(inside) is tuple else []
            if is_dataclass(inside):
                tag = f"{inside.tag}." if hasattr(inside, "tag") else ""
                yield from _fields(inside, f"{prefix}{part.name}.{tag}")


def test_every_known_field_is_listed_unless_a_rule_always_refuses_its_values(
    pages: Path,
) -> None:
    kinds = {
        "": StudyKeys,
        "search.": SearchKeys,
        "search.space.PATH.": EntryKeys,
        "claims.": Claim,
    }
    known = {path for prefix, kind in kinds.items() for path in _fields(kind, prefix)}
    listed = _rows(pages / "study-keys.md").keys() | _rows(pages / "section-keys.md").keys()
    assert known - listed == REFUSED.keys()
    assert listed <= known


@pytest.mark.parametrize("path", REFUSED)
def test_a_field_that_is_not_listed_is_refused_by_the_reader_and_by_the_schema(path: str) -> None:
    written = yaml.safe_load(SMALL + STUDIES[4])
    *above, name = path.split(".")
    reduce(getitem, above, written)[name] = 9
    with pytest.raises(StudyError, match=REFUSED[path]):
        study_of(written)
    schema = jsonschema.Draft202012Validator(study_schema())
    assert not schema.is_valid(written)
    del reduce(getitem, above, written)[name]
    schema.validate(written)


EXAMPLES: dict[str, dict[str, Any]] = {
    "model.weights": {
        "model.name": "timm",
        "model.architecture": "resnet18",
        "model.weights": "undivided/train/ants/0.png",
    },
    "mix.schedule": {
        "mix.schedule": {
            "phases": [
                {"law": {"beta": 0.5}, "until": 1},
                {"law": "midpoint", "until": 2},
                {"truncated": {"alpha": 1.0, "low": 0.25, "high": 0.75}},
            ]
        }
    },
    "mix.schedule.phases": {
        "mix.schedule": "phases",
        "mix.schedule.phases": [{"law": "erm", "until": 1}, {"beta": {"a": 2.0, "b": 5.0}}],
    },
    "probes": {"probes": [{"mean-gradient-norm": {"draws": 3, "every": 2}}]},
}
"""Arms of `images` by a field that they set, which needs files, or several values at once."""


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make two image folders in a new working directory; only `photos` has test images."""
    monkeypatch.chdir(tmp_path)
    for folder in ("photos/train", "photos/test", "undivided/train"):
        for shade, kind in enumerate(("ants", "bees")):
            Path(folder, kind).mkdir(parents=True)
            for number in range(4):
                image = Image.new("RGB", (16, 16), (len(folder), shade, number))
                image.save(Path(folder, kind, f"{number}.png"))


def _accepts(problem: str, values: dict[str, Any]) -> bool:
    """Return True if the reader accepts an arm with some values, by dotted path."""
    arms = {"written": values}
    if (teacher := values.get("objective.teacher")) is not None:
        arms[teacher] = {p: v for p, v in values.items() if not p.startswith("objective")}
    document = {
        "study": "written",
        "problem": problem,
        "base": NEEDED.get(problem, {}),
        "arms": arms,
        "seeds": 1,
    }
    try:
        return bool(study_of(json.loads(json.dumps(document))).arms)
    except StudyError:
        return False


def _is_settable(problem: str, path: str) -> bool:
    """Return True if the reader accepts an arm in which a field does not have its default."""
    if problem == "images" and path in EXAMPLES:
        return _accepts(problem, EXAMPLES[path])
    known = config_paths(problem_named(problem)).leaves
    for config in reversed(configurations()[problem]):
        for _, other in changed(config, path):
            values = {at: value for at, value in flatten(other).items() if at in known}
            if values.get("data.folder") is not None:
                divides = values["data.test_fraction"] is not None
                values["data.folder"] = "undivided" if divides else "photos"
            is_default = path not in values or values[path] == defaults(other)[path]
            if not is_default and _accepts(problem, values):
                return True
    return False


@pytest.mark.usefixtures("folders")
@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=pytest.mark.long if n == "images" else []) for n in PROBLEMS],
)
def test_the_reader_accepts_another_value_than_the_default_of_every_field_with_several(
    name: str,
) -> None:
    paths = config_paths(problem_named(name)).leaves.keys()
    assert [path for path in paths if not _is_settable(name, path)] == [
        path for path in paths if path in FIXED.get(name, set())
    ]
