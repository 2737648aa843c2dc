"""Dataset Fashion-MNIST: Xiao, Rasul and Vollgraf 2017, arXiv:1708.07747."""

import shutil
import subprocess
from functools import partial
from pathlib import Path

from mixup_core.arrays import torchvision
from mixup_core.images.data import sources
from mixup_core.images.data.facts import DataError, Dataset, DatasetInfo, Sources
from mixup_core.images.data.sets.mnist import of_mirrors, read, read_labels, unpack

FOLDER = "FashionMNIST/raw"
DEBIAN_PACKAGE = "dataset-fashion-mnist"
DEBIAN_FOLDER = Path("/usr/share/datasets/fashion-mnist")
_APT_TIMEOUT = 600.0


def _sources(root: Path) -> Sources:
    found = of_mirrors(Path(FOLDER), torchvision.datasets.FashionMNIST.mirrors)
    package, installed = f"Debian package {DEBIAN_PACKAGE}", partial(unpack, DEBIAN_FOLDER)
    found |= {
        f"{package}, installed": partial(installed, Path(FOLDER)),
        f"{package}, downloaded": _unpack_debian_package,
    }
    return found, (
        f"on Debian or Ubuntu `apt-get install {DEBIAN_PACKAGE}` and fetch again; elsewhere "
        "fetch on a machine with a network and set MIXSWEEP_DATA to a copy of its folder."
    )


def _unpack_debian_package(staging: Path) -> None:
    timeout = f"Acquire::http::Timeout={sources.TIMEOUT:.0f}"
    options = ["-o", timeout, "-o", "Acquire::Retries=0"]
    try:
        _run(["apt-get", "download", "-q", *options, DEBIAN_PACKAGE], staging)
    except DataError as error:
        raise DataError(f"{error} (`apt-get update` loads missing package lists)") from error
    (package,) = staging.glob("*.deb")
    _run(["dpkg-deb", "-x", package.name, "unpacked"], staging)
    inside = staging / "unpacked" / DEBIAN_FOLDER.relative_to(DEBIAN_FOLDER.anchor)
    unpack(inside, Path(FOLDER), staging)


def _run(command: list[str], folder: Path) -> None:
    if shutil.which(command[0]) is None:
        raise DataError(f"the program {command[0]} is not installed on this machine")
    done = subprocess.run(
        command, cwd=folder, timeout=_APT_TIMEOUT, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        reasons = [line for line in done.stderr.splitlines() if line.startswith(("E:", "dpkg"))]
        raise DataError(" ".join(reasons) or f"{command[0]} failed: exit code {done.returncode}")


_CLASSES = (
    "T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag",
    "Ankle boot",
)  # fmt: skip

DATASET = Dataset(
    # Frozen: each name, size, mean and standard deviation in this file. After a change, stored
    # results are not found or get another meaning; tests/golden/test_keys.py fails.
    name="fashion-mnist",
    info=DatasetInfo(
        title="Fashion-MNIST",
        num_train=60_000,
        num_test=10_000,
        num_classes=10,
        channels=1,
        image_size=28,
        mean=(0.5,),
        std=(0.5,),
        smallest_class=6_000,
        classes=_CLASSES,
    ),
    # Digests of the unpacked files, which torchvision does not check. They are the same for all
    # packagers: Debian's archives differ from torchvision's only in the gzip header (name, time).
    files={
        "train": {
            f"{FOLDER}/train-images-idx3-ubyte": "sha256:"
            "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
            f"{FOLDER}/train-labels-idx1-ubyte": "sha256:"
            "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
        },
        "test": {
            f"{FOLDER}/t10k-images-idx3-ubyte": "sha256:"
            "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
            f"{FOLDER}/t10k-labels-idx1-ubyte": "sha256:"
            "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
        },
    },
    sources=_sources,
    read=partial(read, Path(FOLDER)),
    labels=partial(read_labels, Path(FOLDER)),
)
