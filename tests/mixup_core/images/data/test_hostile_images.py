"""Hostile images: each is used, or refused in one line that names the file."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest
import torch

from mixsweep.cli.main import BAD_INPUT
from mixup_core.images.data.data_config import DataConfig
from mixup_core.images.data.datasets import load
from mixup_core.images.data.facts import DataError
from tests.conftest import CommandLine
from tests.hostile_images import SIDE, STUDY, Hostile, hostile_images, put

FILES = list(hostile_images())


def _load(folder: Path, background: Literal["white"] | None = None) -> torch.Tensor:
    data = DataConfig(
        name="image-folder", folder=str(folder), image_size=SIDE, background=background
    )
    return load(data, folder.parent / "data").train.pixels


@pytest.mark.parametrize("hostile", FILES, ids=str)
def test_a_hostile_image_loads_or_is_refused_in_one_line_with_its_name(
    hostile: Hostile, tmp_path: Path
) -> None:
    file = put(tmp_path / "photos", hostile)
    if hostile.is_taken:
        if hostile.is_clear:
            with pytest.raises(DataError, match=r"transparent pixels; set data\.background"):
                _load(tmp_path / "photos")
        pixels = _load(tmp_path / "photos", "white")
        assert pixels.shape == (5, 3, SIDE, SIDE)
        return
    with pytest.raises(DataError) as refused:
        _load(tmp_path / "photos")
    assert str(refused.value).startswith(f"{file}: ")
    fault, advice = str(refused.value).split("\n")
    assert fault.isprintable()
    assert advice.isprintable()


@pytest.mark.parametrize("name", ["a\nb", "\x1b[2J", "one\u202etwo"])
def test_control_characters_in_image_names_are_escaped_in_errors(name: str, tmp_path: Path) -> None:
    for content in (b"no image", b""):
        hostile = Hostile(name="named", suffix="png", content=content, is_taken=False)
        put(tmp_path / "photos", hostile, name)
        with pytest.raises(DataError) as refused:
            _load(tmp_path / "photos")
        fault, advice = str(refused.value).split("\n")
        assert fault.isprintable()
        assert advice.isprintable()
        assert name.encode("unicode_escape").decode() in str(refused.value)


@pytest.mark.long
def test_loading_all_hostile_images_adds_less_than_500_mb_of_peak_memory(tmp_path: Path) -> None:
    """Compares the peak memory of a process that reads all of them with one that reads none."""
    for number, hostile in enumerate(FILES):
        put(tmp_path / f"{number}" / "photos", hostile)
    peaks = []
    for count in (0, len(FILES)):
        program = (
            "import resource, sys\n"
            "from pathlib import Path\n"
            "from mixup_core.images.data.data_config import DataConfig\n"
            "from mixup_core.images.data.datasets import DataError, load\n"
            "for number in range(int(sys.argv[2])):\n"
            "    folder = Path(sys.argv[1]) / str(number) / 'photos'\n"
            "    data = DataConfig(name='image-folder', folder=str(folder), image_size=16)\n"
            "    try:\n"
            "        load(data, folder.parent / 'data')\n"
            "    except DataError:\n"
            "        pass\n"
            "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)\n"
        )
        ran = subprocess.run(
            [sys.executable, "-c", program, str(tmp_path), str(count)],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        peaks.append(int(ran.stdout) / 1024)
    assert peaks[1] - peaks[0] < 500


@pytest.mark.long
def test_the_run_command_refuses_a_hostile_image_before_training(
    tmp_path: Path, command_line: Callable[..., CommandLine]
) -> None:
    (hostile,) = (hostile for hostile in FILES if hostile.name == "half of jpg")
    file = put(tmp_path / "photos", hostile)
    (tmp_path / "study.yaml").write_text(STUDY)
    mixsweep = command_line()
    said = mixsweep("run", str(tmp_path / "study.yaml"), code=BAD_INPUT).stderr.splitlines()
    assert f"dog/{file.name}: " in said[-2]
    assert said[-1] == "convert or remove these files, or leave them out with data.skip"
    assert not any("Traceback" in line for line in said)
    assert not list(mixsweep.home.rglob("stages/*/*.json"))
