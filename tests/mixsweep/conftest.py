"""Fixtures for commands on a home, and on a finished study of photos."""

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from PIL import Image

from mixsweep.cli.main import commands
from mixup_core.store.checkpoints import Store
from tests.mixsweep.cli.photos import STUDY
from tests.mixsweep.cli.trained import train

TypeIn = Callable[..., Result]
"""Function that runs a command, given by its words."""


@pytest.fixture
def type_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TypeIn:
    """Return a function that runs a command on the home `runs`."""
    monkeypatch.setenv("MIXSWEEP_HOME", str(tmp_path / "runs"))
    monkeypatch.setenv("MIXSWEEP_DATA", str(tmp_path / "data"))
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    # Without `color`, click would remove control sequences before a test sees them.
    return lambda *words: CliRunner().invoke(commands, words, standalone_mode=False, color=True)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Store of the home `runs`."""
    return Store(str(tmp_path / "runs" / "store"))


@pytest.fixture
def launched(tmp_path: Path, type_in: TypeIn) -> Path:
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
