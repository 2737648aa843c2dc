"""Fixtures: a home with MLflow, studies, and the toy problem."""

from collections.abc import Iterator
from pathlib import Path

import jsonschema  # type: ignore[import-untyped]
import pytest
from mlflow import MlflowClient

from mixup_core.config.building import with_values
from mixup_core.laws import Midpoint
from mixup_core.problem import PROBLEMS
from mixup_core.store.checkpoints import Store
from sweeps.machine.home import Home
from sweeps.reading.schema import study_schema
from sweeps.study.study import Study
from tests import toy
from tests.sweeps.tracked import ERM


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Home with one database for all tests, because creating its tables takes seconds."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture
def study(request: pytest.FixtureRequest) -> Study:
    """Study of two arms and two seeds, with its own experiment for each test."""
    return Study(
        name=request.node.name.replace("_", "-"),
        description="Two arms at two seeds.",
        arms={"erm": ERM, "midpoint": with_values(ERM, {"mix.law": Midpoint()})},
        seeds=(0, 1),
        baseline="erm",
        source="",
    )


@pytest.fixture
def client(home: Path) -> MlflowClient:
    return MlflowClient(Home(folder=home).tracking_uri)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(str(tmp_path / "store"))


@pytest.fixture
def toy_problem() -> Iterator[None]:
    """Register the toy problem during a test."""
    PROBLEMS.add(toy.TOY)
    yield
    PROBLEMS.remove(toy.TOY.name)


@pytest.fixture(scope="session")
def schema_of_studies() -> jsonschema.Draft202012Validator:
    """JSON Schema of study files, built once, because it has half a megabyte."""
    return jsonschema.Draft202012Validator(study_schema())
