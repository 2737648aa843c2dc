from pathlib import Path

import pytest

from tests.hostile_images import Hostile, hostile_images, put
from tests.soak.images import Look, look, wrong_with

IMAGES = {hostile.name: hostile for hostile in hostile_images()}
TAKEN = next(hostile for hostile in IMAGES.values() if hostile.is_taken)
REFUSED = IMAGES["square bomb"]
FILE = Path("dog") / "hostile.png"
SOUND = Look(told="", seconds=0.1, mb=20.0)


@pytest.mark.parametrize(
    ("hostile", "told", "seconds", "mb", "broken"),
    [
        (TAKEN, "", 0.1, 20.0, 0),
        (REFUSED, f"{FILE}: is too large", 0.1, 20.0, 0),
        (TAKEN, f"{FILE}: is no image", 0.1, 20.0, 1),
        (REFUSED, "", 0.1, 20.0, 1),
        (REFUSED, "is too large", 0.1, 20.0, 1),
        (REFUSED, f"{FILE}: is\ntoo\nlarge", 0.1, 20.0, 1),
        (REFUSED, None, 0.1, 20.0, 1),
        (TAKEN, None, 0.1, 20.0, 1),
        (TAKEN, "", 2.5, 600.0, 2),
    ],
)
def test_broken_guarantees_are_counted(
    hostile: Hostile, told: str | None, seconds: float, mb: float, broken: int
) -> None:
    seen = Look(told=told, seconds=seconds, mb=mb)
    assert len(wrong_with(hostile, FILE, seen, SOUND)) == broken


@pytest.mark.parametrize("hostile", [TAKEN, REFUSED], ids=str)
def test_a_folder_of_images_is_read_in_a_separate_process(hostile: Hostile, tmp_path: Path) -> None:
    file = put(tmp_path / "photos", hostile)
    seen = look(tmp_path / "photos")
    assert wrong_with(hostile, file, seen, SOUND) == []
    assert seen.seconds > 0
    assert 0 <= seen.mb < 500
