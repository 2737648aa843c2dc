import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
import yaml

from mixup_core.problem import PROBLEMS, problem_named
from sweeps.reading.schema import study_schema
from sweeps.reading.tree_paths import config_paths
from tests.sweeps.small_searches import STUDY, read


@pytest.mark.parametrize("off", [(), ("search.prune=null", "search.confirm=null")])
def test_the_schema_accepts_studies_that_the_reader_accepts(
    tmp_path: Path, off: tuple[str, ...], schema_of_studies: jsonschema.Draft202012Validator
) -> None:
    more = "  sampler: gp\n  seed: 3\n  select: val-1se\n  confirm: {seeds: [7]}\n"
    more += "  prune: {after: 2}\n  budget: {hours: 1}\n"
    study = read(tmp_path, STUDY + more, *off)
    schema_of_studies.validate(yaml.safe_load(study.source))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("objective", "test/error"),
        ("sampler", "tpa"),
        ("prune", {"after": 1}),
        ("space", {"data.val_size": {"int": [100, 200]}}),
        ("bogus", 1),
    ],
)
def test_the_schema_refuses_values_that_the_reader_refuses(
    tmp_path: Path, key: str, value: Any, schema_of_studies: jsonschema.Draft202012Validator
) -> None:
    broken = yaml.safe_load(read(tmp_path).source)
    broken["search"][key] = value
    assert not schema_of_studies.is_valid(broken)


def test_the_schema_describes_each_field_including_inherited_ones() -> None:
    schema = study_schema()
    images = schema["$defs"]["images"]["properties"]
    assert "epochs of warm-up" in images["lr_schedule.warm_up"]["description"]
    assert images["mix.schedule.start"]["description"] == "Alpha of the first epoch."
    cases = [case["then"]["properties"]["search"]["properties"] for case in schema["allOf"]]
    assert all(case["sampler"]["description"] == "Method that proposes points." for case in cases)


@pytest.mark.parametrize(
    ("path", "inside", "outside"),
    [
        ("mix.law.alpha", (1e-6, 1, 1e6), (0, 1e7)),
        ("optimizer.momentum", (0, 0.9), (-0.1, 1)),
        ("data.num_train", (1, None), (0, 1.5)),
        ("model.hidden", ([1, 2], None), ([0], ["a"])),
        ("data.corruptions", (["fog"], []), (["fog", "fog"], ["mist"])),
    ],
)
def test_the_schema_has_the_range_of_each_field(
    path: str, inside: tuple[Any, ...], outside: tuple[Any, ...]
) -> None:
    field = study_schema()["$defs"]["images"]["properties"][path]
    validator = jsonschema.Draft202012Validator(field)
    assert all(map(validator.is_valid, inside))
    assert not any(map(validator.is_valid, outside))


@pytest.mark.parametrize(
    ("law", "is_valid"),
    [
        ({"beta": {"a": 2, "b": 5}}, True),
        ({"0.5": 0.7, "1.0": 0.3}, True),
        ({"beta-ab": {"a": 2, "b": 5}}, True),
        ({"beta": {"a": 2, "c": 5}}, False),
        ({"0.5": 0.7, "often": 0.3}, False),
        ({"0.5": 1.7, "1.0": 0.3}, False),
        ({"discrete": {"0.5": 0.7, "1.0": 0.3}}, True),
        ({"discrete": {"0.5": 0.7, "often": 0.3}}, False),
    ],
)
def test_the_schema_accepts_the_short_forms_of_laws(law: Any, is_valid: bool) -> None:
    field = study_schema()["$defs"]["images"]["properties"]["mix.law"]
    assert jsonschema.Draft202012Validator(field).is_valid(law) is is_valid


def _descriptions(schema: Any) -> Iterator[str]:
    """Yield every description in a schema, those of nested schemas included."""
    inside = schema.values() if isinstance(schema, dict) else schema
    if isinstance(schema, dict) and isinstance(text := schema.get("description"), str):
        yield text
    for part in inside if isinstance(schema, dict | list) else ():
        yield from _descriptions(part)


def test_descriptions_are_texts_without_the_examples_of_docstrings() -> None:
    texts = set(_descriptions(study_schema()))
    assert "Random weight: lam ~ Beta(alpha, alpha)" in "\n".join(texts)
    assert len(texts) > 300
    for text in texts:
        assert text == text.strip() != ""
        assert not re.search(r"^Examples?:$|>>>|In a study file", text, re.MULTILINE), text


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_schema_names_no_field_that_is_reserved(name: str) -> None:
    paths = config_paths(problem_named(name))
    fields = study_schema()["$defs"][name]["properties"]
    assert not fields.keys() & paths.reserved.keys()
    for path in paths.reserved:
        whole, _, field = path.rpartition(".")
        assert f"'{field}': {{" not in str(fields.get(whole))
