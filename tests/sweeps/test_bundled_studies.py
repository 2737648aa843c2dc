from pathlib import Path

import jsonschema  # type: ignore[import-untyped]
import pytest
import yaml

import sweeps.studies
from tests.bundled import bundled, few

FILES = sorted(Path(next(iter(sweeps.studies.__path__))).glob("*.yaml"), key=lambda file: file.stem)


GOLDEN = {"search-alpha-switch": "cb814f0e", "search-alpha-switch-cifar": "f416c4bb"}
"""Fingerprints of the bundled searches at 6a4fe0d, by which their Optuna studies are found."""


def test_a_bundled_study_has_the_name_of_its_file_and_its_run_command() -> None:
    for file in FILES:
        study = bundled(file.stem)
        assert study.name == file.stem
        assert f"`mixsweep run {file.stem}`" in study.description, file


@pytest.mark.parametrize("name", few([file.stem for file in FILES]))
def test_a_bundled_study_agrees_with_the_schema_and_trains_no_run_twice(
    name: str, schema_of_studies: jsonschema.Draft202012Validator
) -> None:
    study = bundled(name)
    assert len({run.key for run in study.runs()}) == len(study.arms) * len(study.seeds)
    schema_of_studies.validate(yaml.safe_load(study.source))
    sizes = [study.problem.cost.memory(config) for config in study.arms.values()]
    has_data = study.problem.data is not None
    assert all(all(size.values()) and bool(size) == has_data for size in sizes)


@pytest.mark.parametrize("name", GOLDEN)
def test_a_bundled_search_keeps_its_recorded_fingerprint(name: str) -> None:
    study = bundled(name)
    assert study.search.fingerprint(study.seeds) == GOLDEN[name]
