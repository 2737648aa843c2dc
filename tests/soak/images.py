"""Hostile images: each is used or refused in one line, and none kills a worker."""

import argparse
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import torchvision  # noqa: F401  once: else every process that reads a folder loads it

from mixsweep.cli.main import BAD_INPUT
from mixup_core.images.data.catalog import DataError
from mixup_core.images.data.data_config import DataConfig
from mixup_core.images.data.datasets import load
from mixup_core.store.checkpoints import Store
from sweeps.reading.study_file import load_study
from sweeps.state.results import last_attempt, read_results
from tests.conftest import CommandLine
from tests.hostile_images import SIDE, STUDY, Hostile, hostile_images, put
from tests.soak.findings import publish
from tests.soak.memory import peak_mb, resident_mb
from tests.soak.place import Place
from tests.soak.warm import Warm

SLOW_AFTER = 2.0
"""CPU seconds that reading a folder with one such file may take."""
_MOST_LINES = 2
"""Lines of a refusal: the file with its fault, then what to do."""
PATIENCE = 60.0
"""Seconds after which a launch that has to refuse a file counts as hanging."""
LARGEST_MB = 500.0
"""Largest peak memory in MB of a process that reads the file, beyond one that reads valid images.
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Look:
    """Result of a process that reads a folder of images."""

    told: str | None
    """Message of the refusal; empty if the folder was accepted, None if the process died or raised.
    """
    seconds: float
    """CPU seconds."""
    mb: float
    """Peak memory beyond that at the start, in MB."""


def look(folder: Path) -> Look:
    """Read a folder in a forked process."""
    with ProcessPoolExecutor(1, mp_context=get_context("fork")) as pool:
        try:
            return pool.submit(_read, folder).result()
        except BrokenProcessPool:
            return Look(told=None, seconds=0.0, mb=0.0)


def _read(folder: Path) -> Look:
    before, started = resident_mb(), time.process_time()
    data = DataConfig(name="image-folder", folder=str(folder), image_size=SIDE, background="white")
    told: str | None = ""
    try:
        load(data, folder.parent / "data")
    except DataError as error:
        told = str(error)
    except Exception as error:  # any other type is a traceback to the user
        told = None
        print(f"{folder.parent.name}: {type(error).__name__}: {error}", flush=True)  # noqa: T201
    return Look(told=told, seconds=time.process_time() - started, mb=peak_mb() - before)


def wrong_with(hostile: Hostile, file: Path, seen: Look, of_sound: Look) -> list[str]:
    """Return the guarantees that reading a file broke."""
    right = "" if hostile.is_taken else f"{file}: "
    lines = [] if seen.told is None else seen.told.split("\n")
    is_clear = 0 < len(lines) <= _MOST_LINES and lines[0].startswith(right)
    is_clear &= all(map(str.isprintable, lines)) and bool(seen.told) != hostile.is_taken
    wrong = [] if is_clear else [f"told {seen.told!r}"]
    wrong += [f"took {seen.seconds:.1f} s"] if seen.seconds > SLOW_AFTER else []
    beyond = seen.mb - of_sound.mb
    wrong += [f"took {beyond:.0f} MB"] if beyond > LARGEST_MB else []
    return [f"{hostile.name}: {what}" for what in wrong]


def refused(
    launch: Warm, mixsweep: CommandLine, hostile: Hostile, file: Path, study: Path
) -> list[str]:
    """Return the guarantees broken by a launch that has to refuse a file before any run."""
    ended = launch(mixsweep, "run", str(study), patience=PATIENCE)
    said = ended.err.strip().splitlines()
    # A line for each file that is refused, and a last one on what to do.
    is_right = ended.code == BAD_INPUT and any(f"dog/{file.name}: " in line for line in said)
    is_right &= not any("Traceback" in line for line in said)
    is_right &= not list(mixsweep.home.rglob("stages/*/*.json"))
    return [] if is_right else [f"{hostile.name}: ended with {ended.code}: {said[-2:]}"]


def trained(mixsweep: CommandLine, taken: Sequence[Hostile], folder: Path) -> int:
    """Train on all files that are images, and return how often a worker died."""
    for number, hostile in enumerate(taken):
        put(folder / "photos", hostile, f"hostile-{number}")
    study = folder / "study.yaml"
    study.write_text(STUDY)
    mixsweep("run", str(study))
    (result,) = read_results(load_study(str(study)).runs(), Store(str(mixsweep.home / "store")))
    assert result.stage is not None
    return last_attempt(result.stage, result.run.key) - 1


def main() -> None:
    """Test all files and publish; exit with 1 if a guarantee was broken."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    place, wrong, told = Place(), list[str](), Counter[str]()
    seen: dict[str, Look] = {}
    every = list(hostile_images())
    sound = Hostile(name="sound", suffix="png", content=every[0].content, is_taken=True)
    put(place.folder / "sound" / "photos", sound)
    of_sound = look(place.folder / "sound" / "photos")
    with Warm.started() as launch:
        for number, hostile in enumerate(every):
            folder = place.folder / f"{number}"
            file = put(folder / "photos", hostile)
            seen[hostile.name] = look(folder / "photos")
            wrong += wrong_with(hostile, file, seen[hostile.name], of_sound)
            told["taken" if hostile.is_taken else "refused"] += 1
            if not hostile.is_taken:
                study = folder / "study.yaml"
                study.write_text(STUDY)
                wrong += refused(launch, place.home(f"home-{number}"), hostile, file, study)
    deaths = trained(place.home("all"), [h for h in every if h.is_taken], place.folder / "all")
    wrong += [f"{deaths} workers died"] if deaths else []
    figures = {
        "images": len(every),
        "told": dict(told),
        "slowest_seconds": max(look.seconds for look in seen.values()),
        "largest_memory_mb_beyond_sound": max(look.mb for look in seen.values()) - of_sound.mb,
        "worker_deaths": deaths,
        "violations": wrong,
    }
    publish("images", f"{len(every)} hostile images", figures)
    print("\n".join(wrong) or "every promise was kept")  # noqa: T201
    raise SystemExit(1 if wrong else 0)


if __name__ == "__main__":
    main()
