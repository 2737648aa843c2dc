from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
import yaml

from sweeps.reading.schema import study_schema
from tests.sweeps.small_searches import STUDY, read


@pytest.mark.long
def test_the_schema_is_itself_a_valid_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(study_schema())


@pytest.mark.parametrize("off", [(), ("search.prune=null", "search.confirm=null")])
def test_the_schema_accepts_studies_that_the_reader_accepts(
    tmp_path: Path, off: tuple[str, ...], schema_of_studies: jsonschema.Draft202012Validator
) -> None:
    more = "  sampler: gp\n  seed: 3\n  select: val-1se\n  confirm: {seeds: [7]}\n"
    more += "  prune: {after: 2}\n  budget: {hours: 1}\n"
    study = read(tmp_path, STUDY + more, *off)
    schema_of_studies.validate(yaml.safe_load(study.source))


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
