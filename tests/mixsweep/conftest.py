"""Fixtures for commands on a finished study of photos, and those of the rooms below."""

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from PIL import Image

from mixsweep.cli.main import commands
from tests.mixsweep.cli.photos import STUDY
from tests.mixsweep.cli.trained import train
from tests.sweeps.conftest import client as client
from tests.sweeps.conftest import home as home
from tests.sweeps.conftest import study as study
from tests.sweeps.conftest import toy_problem as toy_problem


@pytest.fixture
def type_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Return a function that runs a command on the home `runs`."""
    monkeypatch.setenv("MIXSWEEP_HOME", str(tmp_path / "runs"))
    monkeypatch.setenv("MIXSWEEP_DATA", str(tmp_path / "data"))
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    # Without `color`, click would remove control sequences before a test sees them.
    return lambda *words: CliRunner().invoke(commands, words, standalone_mode=False, color=True)


@pytest.fixture
def launched(tmp_path: Path, type_in: Callable[..., Result]) -> Path:
    """Home with a finished study of photos, launched with one seed more than its file has."""
    del type_in
    number = 0
    for split, count in (("train", 3), ("test", 2)):
        for kind in ("left", "right"):
            (tmp_path / "place" / "photos" / split / kind).mkdir(parents=True)
            for index in range(count):
                number += 1
                image = Image.new("RGB", (8, 8), (number, 0, 0))
                image.save(tmp_path / "place" / "photos" / split / kind / f"{index}.png")
    (tmp_path / "place" / "signs.yaml").write_text(STUDY)
    train(tmp_path / "runs", str(tmp_path / "place" / "signs.yaml"), "seeds=3")
    return tmp_path / "runs"
