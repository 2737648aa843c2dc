"""Pictures: opens image files, checks their headers, converts to 8-bit RGB. Imports no torch."""

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

from mixup_core.arrays import Image, ImageOps
from mixup_core.images.data.facts import DataError
from mixup_core.rules import printable

FORMATS = (
    "AVIF", "BMP", "DIB", "GIF", "JPEG", "JPEG2000", "PNG", "PPM", "QOI", "TGA", "TIFF", "WEBP",
)  # fmt: skip
"""Accepted image formats, by Pillow's names: their headers tell how much memory decoding takes. For
other formats, Pillow needs Ghostscript, or the header does not give the size.
"""

BACKGROUNDS: Mapping[str, tuple[int, int, int]] = {
    "white": (255, 255, 255),
    "black": (0, 0, 0),
    "grey": (128, 128, 128),
}
"""Colours that can be put behind transparent pixels."""

_READING = 2
"""Version of the functions below; raise it when they return other pixels for the same file."""
_MAX_PIXELS = 60_000_000
"""Maximum number of pixels of an image, both as stored and after resizing. Decoding then takes less
than 500 MB: Pillow needs 4 bytes per pixel and two copies.
"""


def picture_reader() -> str:
    """Return a text that identifies the reader of pictures: versions of Pillow and this module."""
    return f"{version('pillow')} {_READING}"


@contextmanager
def opened_picture(file: Path, size: int | None = None) -> Iterator[Any]:
    """Context manager: open an image file. Its pixels are decoded when they are first used."""
    try:
        # Pillow's warnings concern sizes, which `_check_head` checks, and metadata, which is not
        # used. The file is opened here, because Pillow would map a TIFF file that it opens by name
        # into memory, and then rotate it wrongly.
        with (
            warnings.catch_warnings(action="ignore"),
            Path(file).open("rb") as stream,
            Image.open(stream, formats=FORMATS) as opened,
        ):
            _check_head(file, opened, size)
            _scale_transparent_grey(file, opened)
            yield opened
    except DataError:
        raise
    except Exception as error:  # decoders raise SyntaxError, struct.error, EOFError and more
        text = f"{file}: cannot be decoded as an image ({_reason(Path(file), error)})."
        raise DataError(printable(text)) from error


def _reason(file: Path, error: Exception) -> str:
    """Return why a file cannot be decoded; of a file that is no image, its first bytes."""
    from PIL import UnidentifiedImageError

    if isinstance(error, UnidentifiedImageError):
        with suppress(OSError), file.open("rb") as opened:
            start = opened.read(40)
            return f"it begins with {str(start)[1:]}" if start else "the file is empty"
    return str(error).partition(" <_io.")[0]


def is_transparent(opened: Any) -> bool:
    """Return whether an opened image has a pixel that is not fully opaque."""
    if not opened.has_transparency_data:
        return False
    lowest: int = opened.convert("RGBA").getchannel("A").getextrema()[0]
    return lowest < 255


def rgb_picture(file: Path, size: int, background: str | None = None) -> Any:
    """Return an image file as 8-bit RGB, upright, with a colour behind transparent pixels."""
    with opened_picture(file, size) as opened:
        ImageOps.exif_transpose(opened, in_place=True)
        if not is_transparent(opened):
            return opened.convert("RGB")
        if background is None:
            raise DataError(
                f"{printable(str(file))}: has transparent pixels; set data.background to the "
                f"colour behind them: {', '.join(BACKGROUNDS)}."
            )
        behind = Image.new("RGBA", opened.size, (*BACKGROUNDS[background], 255))
        return Image.alpha_composite(behind, opened.convert("RGBA")).convert("RGB")


def _bits_of_png(file: Path) -> int:
    """Return the number of bits per channel, or of a palette's index, of a PNG file."""
    with file.open("rb") as stream:
        return stream.read(25)[24]


def _scale_transparent_grey(file: Path, opened: Any) -> None:
    """Scale the grey that a PNG names as transparent to 8 bits."""
    named = opened.info.get("transparency")
    if opened.format == "PNG" and opened.mode == "L" and isinstance(named, int):
        most = 2 ** _bits_of_png(file) - 1
        opened.info["transparency"] = (named & most) * 255 // most


def _check_head(file: Path, opened: Any, size: int | None) -> None:
    """Check an image by its file header, before its pixels are decoded."""
    named = printable(str(file))
    if opened.mode.startswith(("I", "F")):
        raise DataError(
            f"{named}: has more than 8 bits per channel (Pillow mode {opened.mode}); convert it to "
            "8 bits per channel."
        )
    # The transparent colour cannot be found among pixels that are reduced to 8 bits.
    has_colour = opened.mode == "RGB" and "transparency" in opened.info
    if opened.format == "PNG" and has_colour and _bits_of_png(file) > 8:
        raise DataError(
            f"{named}: has 16 bits per channel and a transparent colour; convert it to 8 bits per "
            "channel."
        )
    # Cameras put a preview beside the photo, as a second picture (MPO).
    if opened.format != "MPO" and getattr(opened, "is_animated", False):
        raise DataError(f"{named}: contains more than one picture; keep the one to train on.")
    width, height = opened.size
    size = size or min(width, height)
    needed = width * height * max(1, (size / min(width, height)) ** 2)
    if needed > _MAX_PIXELS:
        raise DataError(
            f"{named}: has {width} x {height} pixels, and {needed:,.0f} once its short side is "
            f"scaled to {size}; at most {_MAX_PIXELS:,} are decoded. Crop or shrink it."
        )
