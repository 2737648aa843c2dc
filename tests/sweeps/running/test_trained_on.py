"""TrainedOn: facts about the machine that trains a run."""

from importlib.metadata import version
from typing import Any

import pytest

from mixup_core.config.building import with_values
from sweeps.reading.study_file import load_study
from sweeps.running import trained_on


@pytest.mark.parametrize(
    ("study", "values", "packages"),
    [
        ("gaussian-features", {}, {"scipy"}),
        ("digits", {}, {"scipy", "torchvision", "pillow"}),
        (
            "digits",
            {"model": {"name": "timm", "architecture": "resnet18"}},
            {"scipy", "torchvision", "pillow", "timm"},
        ),
    ],
)
def test_a_record_has_the_versions_of_the_packages_that_the_run_uses(
    study: str, values: dict[str, Any], packages: set[str]
) -> None:
    config = with_values(load_study(study).runs()[0].config, values)
    found = trained_on.environment_of("cpu", config)
    assert found.keys() & {"scipy", "torchvision", "pillow", "timm"} == packages
    assert all(found[package] == version(package) for package in packages)
