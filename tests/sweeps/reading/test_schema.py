from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
import yaml
from searching import STUDY, read

from sweeps.reading.schema import study_schema

VALIDATOR = jsonschema.Draft202012Validator(study_schema())


@pytest.mark.parametrize("off", [(), ("search.prune=null", "search.confirm=null")])
def test_the_schema_accepts_what_is_read(tmp_path: Path, off: tuple[str, ...]) -> None:
    more = "  sampler: gp\n  seed: 3\n  select: val-1se\n  confirm: {seeds: [7]}\n"
    more += "  prune: {after: 2}\n  budget: {hours: 1}\n"
    study = read(tmp_path, STUDY + more, *off)
    VALIDATOR.validate(yaml.safe_load(study.source))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("objective", "test/error"),
        ("sampler", "tpa"),
        ("points", 0),
        ("prune", {"after": 1}),
        ("budget", {"hours": 0}),
        ("confirm", {"seeds": []}),
        ("space", {}),
        ("space", {"data.val_size": {"int": [100, 200]}}),
        ("space", {"mix.law": {"beta": {"log_uniform": [0, 1]}}}),
        ("bogus", 1),
    ],
)
def test_the_schema_refuses_what_the_reader_would(tmp_path: Path, key: str, value: Any) -> None:
    broken = yaml.safe_load(read(tmp_path).source)
    broken["search"][key] = value
    with pytest.raises(jsonschema.ValidationError):
        VALIDATOR.validate(broken)
