"""Image files of every kind that a folder may contain, damaged and malicious ones included."""

import io
import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, PngImagePlugin

SIDE = 24
_PHOTO = Image.fromarray(
    np.random.default_rng(0).integers(0, 256, (SIDE, SIDE, 3), dtype=np.uint8), "RGB"
)


STUDY = """
study: hostile
base:
  data: {name: image-folder, folder: photos, image_size: 16, views: concat, background: white}
  model: {name: narrow-resnet, width: 4}
  epochs: 1
  batch_size: 5
arms:
  erm: {mix.law: erm}
seeds: 1
"""
"""Study file that trains on the folder `photos` beside it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Hostile:
    """One such file."""

    name: str
    suffix: str
    content: bytes
    is_taken: bool
    """True if it is an image to train on; False if it must be refused."""
    is_clear: bool = False
    """True if it has transparent pixels, so that it needs a background."""

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
    for make in (_colours, _cut, _flipped, _disguised, _bombs, _pictures, _heads):
        yield from make()


_SUFFIXES: Mapping[str, str] = {
    "PNG": "png", "JPEG": "jpg", "BMP": "bmp", "GIF": "gif", "TIFF": "tiff", "WEBP": "webp",
    "PPM": "ppm", "TGA": "tga", "JPEG2000": "jp2", "QOI": "qoi", "AVIF": "avif",
}  # fmt: skip


_CLEAR = {
    "with alpha", "with alpha, webp", "palette with one transparent colour",
    "palette with transparency in bytes", "transparent gif",
}  # fmt: skip


def _colours() -> Iterator[Hostile]:
    """Files with all colour modes and metadata; most are ordinary images."""
    transparent = _PHOTO.convert("RGBA")
    transparent.putalpha(Image.linear_gradient("L").resize((SIDE, SIDE)))
    palette = _PHOTO.quantize(16)
    deep = Image.fromarray(np.full((SIDE, SIDE), 40_000, dtype=np.uint16))
    taken: Mapping[str, tuple[str, Image.Image, Mapping[str, Any]]] = {
        "one bit": ("PNG", _PHOTO.convert("1"), {}),
        "grey": ("JPEG", _PHOTO.convert("L"), {}),
        "grey with alpha": ("PNG", _PHOTO.convert("LA"), {}),
        "with alpha": ("PNG", transparent, {}),
        "with alpha, webp": ("WEBP", transparent, {"lossless": True}),
        "palette": ("PNG", palette, {}),
        "palette with one transparent colour": ("PNG", palette, {"transparency": 3}),
        "palette with transparency in bytes": ("PNG", palette, {"transparency": bytes(range(16))}),
        "one transparent colour": ("PNG", _PHOTO, {"transparency": (1, 2, 3)}),
        "transparent gif": ("GIF", palette, {"transparency": 0}),
        "CMYK": ("JPEG", _PHOTO.convert("CMYK"), {}),
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
    for name, (kind, image, options) in taken.items():
        content = saved(image, kind, **options)
        yield Hostile(
            name=name, suffix=_SUFFIXES[kind], content=content, is_taken=True,
            is_clear=name in _CLEAR,
        )  # fmt: skip
    for turn in (*range(1, 9), 0, 9, 65_535):
        exif = Image.Exif()
        exif[0x0112] = turn
        content = saved(_PHOTO, "JPEG", exif=exif)
        yield Hostile(name=f"turned {turn}", suffix="jpg", content=content, is_taken=True)
    numbers = Image.fromarray(np.zeros((SIDE, SIDE), dtype=np.float32))
    refused = {
        "16 bits": (deep, "PNG"),
        "16 bits, tiff": (deep, "TIFF"),
        "32 bits": (deep.convert("I"), "TIFF"),
        "real numbers": (numbers, "TIFF"),
    }
    for name, (image, kind) in refused.items():
        content = saved(image, kind)
        yield Hostile(name=name, suffix=_SUFFIXES[kind], content=content, is_taken=False)


def _cut() -> Iterator[Hostile]:
    """Files that are cut short: empty, in the header, half-way."""
    for kind, suffix in _SUFFIXES.items():
        image = _PHOTO.quantize(16) if kind == "GIF" else _PHOTO
        content = saved(image, kind)
        for part, length in (("empty", 0), ("a head", 12), ("half", len(content) // 2)):
            yield Hostile(
                name=f"{part} of {suffix}", suffix=suffix, content=content[:length], is_taken=False
            )


def _flipped() -> Iterator[Hostile]:
    """Files with one wrong byte, which their own checksums reveal."""
    content = saved(_PHOTO, "PNG")
    for place in (18, 30, len(content) // 2):
        damaged = bytearray(content)
        damaged[place] ^= 0x10
        yield Hostile(
            name=f"png, byte {place} flipped", suffix="png", content=bytes(damaged), is_taken=False
        )


def _disguised() -> Iterator[Hostile]:
    """Files whose content does not match their suffix."""
    others = {
        "text": b"not an image\n",
        "a page": b"<html><script>alert(1)</script></html>",
        "PostScript": b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n(%pipe%touch x) (w) file",
        "a pickle": b"\x80\x04cos\nsystem\n(S'touch x'\ntR.",
        "an icon": saved(_PHOTO, "ICO", sizes=[(16, 16)]),
    }
    for name, content in others.items():
        yield Hostile(name=f"{name} as png", suffix="png", content=content, is_taken=False)
    yield Hostile(name="png as jpg", suffix="jpg", content=saved(_PHOTO, "PNG"), is_taken=True)
    yield Hostile(
        name="png and a zip", suffix="png", content=saved(_PHOTO, "PNG") + b"PK\x03\x04",
        is_taken=True,
    )  # fmt: skip
    for suffix in ("svg", "eps", "ico", "exe", "txt", "npy"):
        yield Hostile(
            name=f"png as {suffix}", suffix=suffix, content=saved(_PHOTO, "PNG"), is_taken=False
        )


def _bombs() -> Iterator[Hostile]:
    """Files that decode to far more memory than their size."""
    for name, width, height in (
        ("wide", 3_000_000, 1),
        ("tall", 1, 3_000_000),
        ("square", 10_000, 10_000),
        ("huge", 20_000, 20_000),
        ("immense", 2**31 - 1, 2**31 - 1),
    ):
        yield Hostile(
            name=f"{name} bomb", suffix="png", content=_png(width, height), is_taken=False
        )
    bmp = bytearray(saved(_PHOTO, "BMP"))
    bmp[18:26] = struct.pack("<ii", 30_000, 30_000)
    yield Hostile(name="bmp bomb", suffix="bmp", content=bytes(bmp), is_taken=False)
    yield Hostile(
        name="ppm bomb", suffix="ppm", content=b"P6 30000 30000 255\n" + bytes(99), is_taken=False
    )
    gif = bytearray(saved(_PHOTO.quantize(16), "GIF"))
    gif[6:10] = struct.pack("<HH", 65_535, 65_535)
    yield Hostile(name="gif bomb", suffix="gif", content=bytes(gif), is_taken=False)
    text = PngImagePlugin.PngInfo()
    text.add_text("comment", "x" * 30_000_000, zip=True)
    yield Hostile(
        name="text bomb", suffix="png", content=saved(_PHOTO, "PNG", pnginfo=text), is_taken=False
    )


def _pictures() -> Iterator[Hostile]:
    """Files with several pictures."""
    second = Image.eval(_PHOTO, lambda value: 255 - value)
    for kind in ("PNG", "GIF", "WEBP", "TIFF", "AVIF"):
        content = saved(_PHOTO, kind, save_all=True, append_images=[second])
        yield Hostile(
            name=f"{_SUFFIXES[kind]} of two", suffix=_SUFFIXES[kind], content=content,
            is_taken=False,
        )  # fmt: skip
    content = saved(_PHOTO, "MPO", save_all=True, append_images=[second])
    yield Hostile(name="photo with a preview", suffix="jpg", content=content, is_taken=True)


def _heads() -> Iterator[Hostile]:
    """Files with nonsensical headers."""
    for name, width, height in (("no width", 0, 8), ("no height", 8, 0), ("nothing", 0, 0)):
        yield Hostile(name=name, suffix="png", content=_png(width, height), is_taken=False)
    for depth, colour in ((3, 2), (16, 3), (8, 5), (0, 0)):
        content = _png(8, 8, depth=depth, colour=colour)
        yield Hostile(
            name=f"{depth} bits of colour {colour}", suffix="png", content=content, is_taken=False
        )
    yield Hostile(name="no pixels", suffix="png", content=_png(8, 8), is_taken=False)
    for name, text in (("negative", b"P6 -8 8 255\n"), ("no number", b"P6 x 8 255\n")):
        yield Hostile(name=name, suffix="ppm", content=text + bytes(999), is_taken=False)


def _png(width: int, height: int, *, depth: int = 8, colour: int = 2) -> bytes:
    """Return a PNG with the given header and no pixels."""
    head = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(b"")), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(content))
        + kind
        + content
        + struct.pack(">I", zlib.crc32(kind + content))
        for kind, content in chunks
    )
