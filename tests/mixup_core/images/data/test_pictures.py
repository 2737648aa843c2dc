"""Pictures: transparency, orientation, grey and 16-bit images; opaque images stay the same."""

import resource
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import ExifTags, Image
from PIL.Image import Transpose

from mixup_core.images.data.data_config import DataConfig
from mixup_core.images.data.datasets import load
from mixup_core.images.data.facts import DataError
from mixup_core.images.data.pictures import BACKGROUNDS, is_transparent, rgb_picture
from tests.hostile_images import SIDE, Hostile, hostile_images, png, put

COLOUR = (200, 40, 10)
GREY = 90


def _half_clear(mode: str) -> tuple[Image.Image, dict[str, Any]]:
    """Return an image whose left half is transparent, and its options for saving."""
    alpha = Image.new("L", (SIDE, SIDE), 255)
    alpha.paste(0, (0, 0, SIDE // 2, SIDE))
    if mode in {"RGBA", "LA"}:
        image = Image.new(mode[:-1], (SIDE, SIDE), COLOUR if mode == "RGBA" else GREY)
        image.putalpha(alpha)
        return image, {}
    plain = {"P tRNS": "P", "P tRNS in bytes": "P", "L tRNS": "L", "RGB tRNS": "RGB", "PA": "P"}
    kind = plain[mode]
    hidden: Any = {"P": 1, "L": 7, "RGB": (1, 2, 3)}[kind]
    image = Image.new(kind, (SIDE, SIDE), {"P": 0, "L": GREY, "RGB": COLOUR}[kind])
    image.paste(hidden, (0, 0, SIDE // 2, SIDE))
    if kind == "P":
        image.putpalette([*COLOUR, 0, 0, 0])
    if mode == "PA":
        image = image.convert("PA")
        image.putalpha(alpha)
        return image, {}
    return image, {"transparency": b"\xff\x00" if mode == "P tRNS in bytes" else hidden}


MODES = ("RGBA", "LA", "PA", "P tRNS", "P tRNS in bytes", "L tRNS", "RGB tRNS")


@pytest.mark.parametrize("background", BACKGROUNDS)
@pytest.mark.parametrize("mode", MODES)
def test_transparent_pixels_take_the_background_colour(
    mode: str, background: str, tmp_path: Path
) -> None:
    image, options = _half_clear(mode)
    file = tmp_path / ("image.tiff" if mode == "PA" else "image.png")
    image.save(file, **options)
    with Image.open(file) as opened:
        assert is_transparent(opened)
    with pytest.raises(DataError, match=r"transparent pixels; set data\.background to the colour"):
        rgb_picture(file, SIDE)
    shown = np.asarray(rgb_picture(file, SIDE, background))
    colour = (GREY,) * 3 if mode.startswith("L") else COLOUR
    assert (shown[:, : SIDE // 2] == BACKGROUNDS[background]).all()
    assert (shown[:, SIDE // 2 :] == colour).all()


@pytest.mark.parametrize("mode", ["RGBA", "LA", "P", "L", "RGB", "1", "CMYK"])
def test_the_background_does_not_change_an_opaque_image(mode: str, tmp_path: Path) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (SIDE, SIDE, 3), dtype=np.uint8)
    file = tmp_path / ("image.tiff" if mode == "CMYK" else "image.png")
    Image.fromarray(noise).convert(mode).save(file)
    with Image.open(file) as opened:
        assert not is_transparent(opened)
        wanted = np.asarray(opened.convert("RGB"))
    for background in (None, *BACKGROUNDS):
        assert np.array_equal(np.asarray(rgb_picture(file, SIDE, background)), wanted)


def test_opaque_16_bit_colour_keeps_its_upper_8_bits_and_other_16_bit_images_are_refused(
    tmp_path: Path,
) -> None:
    deep = np.full((SIDE, SIDE), 0x1234, dtype=np.uint16)
    Image.fromarray(deep).save(tmp_path / "grey.png")
    with pytest.raises(DataError, match="convert it to 8 bits per channel"):
        rgb_picture(tmp_path / "grey.png", SIDE)
    colour = bytes.fromhex("12345678 9abc")
    rows = (b"\0" + colour * SIDE) * SIDE
    (tmp_path / "clear.png").write_bytes(png(SIDE, SIDE, rows, 16, 2, colour))
    with pytest.raises(DataError, match="has 16 bits per channel and a transparent colour"):
        rgb_picture(tmp_path / "clear.png", SIDE, "white")
    (tmp_path / "colour.png").write_bytes(png(SIDE, SIDE, rows, 16))
    assert rgb_picture(tmp_path / "colour.png", SIDE).getpixel((0, 0)) == (0x12, 0x56, 0x9A)


@pytest.mark.parametrize("bits", [1, 2, 4, 8])
def test_the_transparent_grey_of_a_png_is_detected_at_every_bit_depth(
    bits: int, tmp_path: Path
) -> None:
    most = 2**bits - 1
    row = bytes(np.packbits([most] * (SIDE // 2 * bits) + [0] * (SIDE // 2 * bits)))
    for clear in (0, most):
        file = tmp_path / f"{clear}.png"
        file.write_bytes(png(SIDE, SIDE, (b"\0" + row) * SIDE, bits, 0, bytes([0, clear])))
        with pytest.raises(DataError, match="transparent pixels"):
            rgb_picture(file, SIDE)
        shown = np.asarray(rgb_picture(file, SIDE, "grey"))
        left, right = (128, 0) if clear == most else (255, 128)
        assert (shown[:, : SIDE // 2] == left).all()
        assert (shown[:, SIDE // 2 :] == right).all()


@pytest.mark.parametrize("suffix", ["png", "tiff"])
@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "CMYK"])
def test_exif_orientation_is_applied_in_every_image_mode(
    mode: str, suffix: str, tmp_path: Path
) -> None:
    if (mode, suffix) == ("CMYK", "png"):
        return
    stored = Image.fromarray(np.arange(24, dtype=np.uint8).reshape(4, 6) * 10).convert(mode)
    for orientation, turn in ((5, Transpose.TRANSPOSE), (6, Transpose.ROTATE_270)):
        exif = Image.Exif()
        exif[ExifTags.Base.Orientation] = orientation
        stored.save(tmp_path / f"x.{suffix}", exif=exif)
        shown = rgb_picture(tmp_path / f"x.{suffix}", SIDE)
        wanted = stored.convert("RGB").transpose(turn)
        assert np.array_equal(np.asarray(shown), np.asarray(wanted)), orientation


FILES = list(hostile_images())


def _load(folder: Path) -> torch.Tensor:
    data = DataConfig(name="image-folder", folder=str(folder), image_size=SIDE)
    return load(data, folder.parent / "data").train.pixels


@pytest.mark.parametrize("hostile", FILES, ids=str)
def test_a_hostile_image_loads_or_is_refused_in_one_line_with_its_name(
    hostile: Hostile, tmp_path: Path
) -> None:
    file = put(tmp_path / "photos", hostile)
    if hostile.is_taken:
        assert _load(tmp_path / "photos").shape == (5, 3, SIDE, SIDE)
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


def _peak_of_loading(folders: list[Path]) -> int:
    for folder in folders:
        with suppress(DataError):
            _load(folder)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


@pytest.mark.long
def test_loading_all_hostile_images_adds_less_than_500_mb_of_peak_memory(tmp_path: Path) -> None:
    for number, hostile in enumerate(FILES):
        put(tmp_path / f"{number}" / "photos", hostile)
    with ProcessPoolExecutor(1, get_context("spawn")) as process:
        before, after = process.map(_peak_of_loading, ([], sorted(tmp_path.glob("*/photos"))))
    assert after - before < 500 * 1024
