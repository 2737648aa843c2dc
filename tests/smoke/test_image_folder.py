"""A study on a user's own images, PNG and JPEG, and messages about broken images."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.conftest import CommandLine

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

STUDY = """
study: photos
base:
  data: {name: image-folder, folder: photos, image_size: 16, views: concat}
  model: {name: narrow-resnet, width: 4}
  epochs: 2
  batch_size: 8
arms:
  erm: {mix.law: erm}
  uniform: {mix.law: {beta: 1.0}}
seeds: 1
"""


def _write_photos(folder: Path) -> None:
    rng = np.random.default_rng(0)
    for split, count in (("train", 6), ("test", 3)):
        for label, name in enumerate(("cat", "dog")):
            place = folder / split / name
            place.mkdir(parents=True)
            for index in range(count):
                pixels = rng.integers(100 * label, 100 * label + 80, (20, 24, 3), dtype=np.uint8)
                suffix = "png" if index % 2 else "jpg"
                Image.fromarray(pixels).save(place / f"{index}.{suffix}")


@pytest.mark.long
def test_a_study_over_png_and_jpeg_files_trains(
    command_line: Callable[..., CommandLine], tmp_path: Path
) -> None:
    _write_photos(tmp_path / "photos")
    study = tmp_path / "photos.yaml"
    study.write_text(STUDY)
    mixsweep = command_line()
    said = mixsweep("run", str(study))
    assert said.stdout.count("1/1") == 2
    assert mixsweep.json("plan", str(study))["to_run"] == 0

    (tmp_path / "photos" / "train" / "cat" / "2.jpg").write_bytes(b"\xff\xd8 not a photo")
    for command in ("plan", "run"):  # before any run starts
        said = mixsweep(command, str(study), code=2)
        assert "cat/2.jpg: cannot be decoded" in said.stderr
        assert "Traceback" not in said.stderr
    cat = np.zeros((20, 24, 3), dtype=np.uint8)
    Image.fromarray(cat).save(tmp_path / "photos" / "train" / "cat" / "2.jpg")
    assert mixsweep.json("plan", str(study))["to_run"] == 2, "other contents are other runs"
