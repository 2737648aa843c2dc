"""Image files of every kind that a folder may contain, damaged and malicious ones included."""

import io
import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import ExifTags, Image, PngImagePlugin

SIDE = 24
_PHOTO = Image.fromarray(
    np.random.default_rng(0).integers(0, 256, (SIDE, SIDE, 3), dtype=np.uint8), "RGB"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Hostile:
    """One such file."""

    name: str
    suffix: str
    content: bytes
    is_taken: bool
    """True if it is an image to train on; False if it must be refused."""

    def __str__(self) -> str:
        return self.name


def saved(image: Image.Image, kind: str, **options: Any) -> bytes:
    """Return an image as the bytes of a file format that Pillow supports."""
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def put(folder: Path, hostile: Hostile, name: str = "hostile") -> Path:
    """Write a file among valid images, in the middle of one of two classes; return its path."""
    for split in ("train", "test"):
        for kind in ("cat", "dog"):
            (folder / split / kind).mkdir(parents=True, exist_ok=True)
            for number in (0, 9):
                Image.new("RGB", (SIDE, SIDE)).save(folder / split / kind / f"{number}.png")
    file = folder / "train" / "dog" / f"{name}.{hostile.suffix}"
    file.write_bytes(hostile.content)
    return file


def hostile_images() -> Iterator[Hostile]:
    """Yield all files, with different names."""
    kinds = {True: (_colours, _odd), False: (_deep, _cut, _disguised, _bombs)}
    for is_taken, makers in kinds.items():
        for make in makers:
            for (suffix, name), content in make().items():
                yield Hostile(name=name, suffix=suffix, content=content, is_taken=is_taken)


Files = dict[tuple[str, str], bytes]
"""Contents by suffix and name."""
_SUFFIXES: Mapping[str, str] = {
    "PNG": "png", "JPEG": "jpg", "BMP": "bmp", "GIF": "gif", "TIFF": "tiff", "WEBP": "webp",
    "PPM": "ppm", "TGA": "tga", "JPEG2000": "jp2", "QOI": "qoi", "AVIF": "avif",
}  # fmt: skip
_PALETTE = _PHOTO.quantize(16)


def _colours() -> Files:
    """Images to train on, with unusual colour modes and metadata."""
    images: Mapping[str, tuple[str, Image.Image, Mapping[str, Any]]] = {
        "CMYK, tiff": ("TIFF", _PHOTO.convert("CMYK"), {}),
        "YCbCr": ("TIFF", _PHOTO.convert("YCbCr"), {}),
        "Lab": ("TIFF", Image.new("LAB", (SIDE, SIDE), (50, 3, 4)), {}),
        "progressive": ("JPEG", _PHOTO, {"progressive": True}),
        "compressed tiff": ("TIFF", _PHOTO, {"compression": "tiff_lzw"}),
        "one pixel": ("PNG", Image.new("RGB", (1, 1)), {}),
        "one row": ("PNG", Image.new("RGB", (500, 1)), {}),
        "broken profile": ("PNG", _PHOTO, {"icc_profile": b"no profile"}),
        "broken exif": ("JPEG", _PHOTO, {"exif": b"Exif\x00\x00II*\x00\xff\xff\xff\xff"}),
        "large exif": ("JPEG", _PHOTO, {"exif": b"Exif\x00\x00" + bytes(60_000)}),
    }
    for turn in (0, 9, 65_535):
        exif = Image.Exif()
        exif[ExifTags.Base.Orientation] = turn
        images = {**images, f"turned {turn}": ("JPEG", _PHOTO, {"exif": exif})}
    return {
        (_SUFFIXES[kind], name): saved(image, kind, **options)
        for name, (kind, image, options) in images.items()
    }


def _odd() -> Files:
    """Other images to train on."""
    preview = saved(_PHOTO, "MPO", save_all=True, append_images=[_PHOTO.rotate(90)])
    return {
        ("jpg", "png as jpg"): saved(_PHOTO, "PNG"),
        ("png", "png and a zip"): saved(_PHOTO, "PNG") + b"PK\x03\x04",
        ("jpg", "photo with a preview"): preview,
    }


def _deep() -> Files:
    """Images of more than 8 bits per channel, and of several pictures."""
    deep = Image.fromarray(np.full((SIDE, SIDE), 40_000, dtype=np.uint16))
    numbers = Image.fromarray(np.zeros((SIDE, SIDE), dtype=np.float32))
    files = {
        ("png", "16 bits"): saved(deep, "PNG"),
        ("tiff", "16 bits, tiff"): saved(deep, "TIFF"),
        ("tiff", "32 bits"): saved(deep.convert("I"), "TIFF"),
        ("tiff", "real numbers"): saved(numbers, "TIFF"),
    }
    for kind in ("PNG", "GIF", "WEBP", "TIFF", "AVIF"):
        content = saved(_PHOTO, kind, save_all=True, append_images=[_PHOTO.rotate(90)])
        files[_SUFFIXES[kind], f"{_SUFFIXES[kind]} of two"] = content
    return files


def _cut() -> Files:
    """Files that are cut short: empty, in the header, half-way."""
    files = {}
    for kind, suffix in _SUFFIXES.items():
        content = saved(_PALETTE if kind == "GIF" else _PHOTO, kind)
        for part, length in (("empty", 0), ("a head", 12), ("half", len(content) // 2)):
            files[suffix, f"{part} of {suffix}"] = content[:length]
    return files


def _disguised() -> Files:
    """Files whose content does not match their suffix."""
    page = b"<html><script>alert(1)</script></html>"
    script = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n(%pipe%touch x) (w) file"
    return {
        ("png", "a page as png"): page,
        ("png", "PostScript as png"): script,
        ("png", "a pickle as png"): b"\x80\x04cos\nsystem\n(S'touch x'\ntR.",
        ("png", "an icon as png"): saved(_PHOTO, "ICO", sizes=[(16, 16)]),
        **{(suffix, f"png as {suffix}"): saved(_PHOTO, "PNG") for suffix in ("svg", "eps", "npy")},
    }


def _bombs() -> Files:
    """Files that decode to far more memory than their size."""
    sides = {
        "wide": (3_000_000, 1), "tall": (1, 3_000_000), "square": (10_000, 10_000),
        "immense": (2**31 - 1, 2**31 - 1),
    }  # fmt: skip
    bmp = bytearray(saved(_PHOTO, "BMP"))
    bmp[18:26] = struct.pack("<ii", 30_000, 30_000)
    gif = bytearray(saved(_PALETTE, "GIF"))
    gif[6:10] = struct.pack("<HH", 65_535, 65_535)
    text = PngImagePlugin.PngInfo()
    text.add_text("comment", "x" * 30_000_000, zip=True)
    return {
        **{("png", f"{name} bomb"): png(*side, b"") for name, side in sides.items()},
        ("bmp", "bmp bomb"): bytes(bmp),
        ("ppm", "ppm bomb"): b"P6 30000 30000 255\n" + bytes(99),
        ("gif", "gif bomb"): bytes(gif),
        ("png", "text bomb"): saved(_PHOTO, "PNG", pnginfo=text),
    }


def png(
    width: int, height: int, rows: bytes, bits: int = 8, colour: int = 2, clear: bytes | None = None
) -> bytes:
    """Return a PNG file.

    Args:
        width: Number of columns.
        height: Number of rows.
        rows: The rows of pixels, each after a byte for its filter.
        bits: Number of bits per channel.
        colour: 0 for grey, 2 for red, green and blue.
        clear: The transparent colour, as the chunk tRNS has it; None for none.
    """

    def chunk(kind: bytes, content: bytes) -> bytes:
        checked = kind + content
        return struct.pack(">I", len(content)) + checked + struct.pack(">I", zlib.crc32(checked))

    parts = [(b"IHDR", struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, 0))]
    parts += [] if clear is None else [(b"tRNS", clear)]
    parts += [(b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(kind, content) for kind, content in parts)
