"""Comparison of bits: train the arms of `arms.yaml` with two commits and compare all bits.

    python -m tests.golden.same_bits --base COMMIT

`mixsweep run` fills two homes, one with the base commit and one with this code. Both must have the
same stages, with the same metrics and the same bytes of weights and optimizer. Exit code 1 means
that they differ. `tests/contracts/test_registries.py` compares resumed runs with others.
"""

import argparse
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.golden.arms import put_arms
from tests.golden.project import Stage, Store, data_root, load_study, stage_keys

HERE = Path(__file__).parents[2]


def main() -> int:
    """Run the comparison and return the exit code."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--base", default="HEAD", help="commit to compare with; default: HEAD")
    base_commit = parser.parse_args().base
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="same-bits-") as scratch:
        place = Path(scratch)
        study, base_code = put_arms(place), place / "code"
        _unpack(base_commit, base_code)
        _fetch_data()
        homes = (base_code, place / "base"), (HERE, place / "here")
        with ThreadPoolExecutor(max_workers=2) as pool:  # each trains in one slot
            base, here = pool.map(lambda job: _trained(*job, study), homes)
        differing = list(_compare(study, base, here))
    seconds = time.monotonic() - started
    sys.stdout.write(f"{sum(differing)} of {len(differing)} differ; {seconds:.0f} s\n")
    return 1 if any(differing) else 0


def _unpack(commit: str, folder: Path) -> None:
    """Write the files of a commit to a folder."""
    archive = subprocess.run(
        ["git", "-C", str(HERE), "archive", commit], check=True, capture_output=True
    ).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        tar.extractall(folder, filter="data")


def _fetch_data() -> None:
    """Download Fashion-MNIST to this machine's data folder if it is missing."""
    command = [sys.executable, "-m", "mixsweep", "data", "fetch", "fashion-mnist"]
    subprocess.run(command, cwd=HERE, env=_environment(HERE), check=True, stdout=sys.stderr)


def _trained(code: Path, home: Path, study: Path) -> Mapping[str, Stage]:
    """Run the study with the packages in a folder; return the content of its store.

    Args:
        code: Folder of the packages.
        home: Folder for results and for decoded images that only this home uses.
        study: The study file.

    Raises:
        SystemExit: If a run fails; the output of the command is printed.
    """
    original = data_root() / "FashionMNIST"
    shutil.copytree(original, home / "data" / original.name, copy_function=os.symlink)
    no_gpu = {"CUDA_VISIBLE_DEVICES": ""}
    environment = _environment(code) | {"MIXSWEEP_DATA": str(home / "data")} | no_gpu
    module = "mixsweep" if (code / "mixsweep" / "__main__.py").exists() else "sweeps.cli"
    command = [
        sys.executable, "-m", module, "run", str(study), "--home", str(home),
        "--slots", "1", "--gpus-per-run", "0", "--keep-final-states",
    ]  # fmt: skip
    done = subprocess.run(
        command, cwd=code, env=environment, text=True, capture_output=True, check=False
    )
    if done.returncode != 0:
        output = f"{done.stdout}\n{done.stderr}"
        raise SystemExit(f"{output}\n{home.name}: `mixsweep run` ended with {done.returncode}")
    store = Store(str(home / "store"))
    return store.read_all(store.keys())


def _environment(code: Path) -> dict[str, str]:
    """Return this environment without variables that name another cluster or server."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("RAY_", "MLFLOW_"))}
    foreign = ("MIXSWEEP_HOME", "MIXSWEEP_STORE", "MIXSWEEP_OPTUNA")
    kept = {k: v for k, v in kept.items() if k not in foreign}
    return kept | {"PYTHONPATH": str(code), "OMP_NUM_THREADS": "1"}


def _compare(study: Path, base: Mapping[str, Stage], here: Mapping[str, Stage]) -> Iterator[bool]:
    """Print whether each run is the same in two homes, and yield whether it differs."""
    known: set[str] = set()
    for run in load_study(str(study)).runs():
        keys = stage_keys(run.config)
        known.update(keys)
        stored = [key for key in keys if key in base or key in here or key == keys[-1]]
        found = [text for key in stored for text in _differences(base.get(key), here.get(key))]
        yield _say(run.arm, f"{len(stored)} stages as in base", found)
    for name, stages in (("base", base), ("here", here)):
        if strangers := sorted(stages.keys() - known):
            yield _say(name, "", [f"stages of no run: {', '.join(strangers)}"])


def _say(name: str, good: str, found: Sequence[str]) -> bool:
    verdict = f"DIFFERS: {'; '.join(found)}" if found else f"equal: {good}"
    sys.stdout.write(f"{name:20} {verdict}\n")
    return bool(found)


def _differences(base: Stage | None, here: Stage | None) -> Iterator[str]:
    """Yield each difference between two stages of one key, as text."""
    if base is None or here is None:
        missing = [name for name, stage in (("base", base), ("here", here)) if stage is None]
        yield f"a stage is missing in {' and '.join(missing)}"
        return
    if len(base.records) != len(here.records):
        yield f"{len(base.records)} epochs in base, {len(here.records)} here"
        return
    for epoch, (old, new) in enumerate(zip(base.records, here.records, strict=True)):
        before, now = old.metrics, new.metrics
        names = [n for n in sorted({*before, *now}) if before.get(n) != now.get(n)]
        if names:
            values = f"{names[0]} {before.get(names[0])} to {now.get(names[0])}"
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            yield f"epoch {epoch}: {values}{more}"
            break
    if base.state != here.state:
        yield f"state after {len(base.records)} epochs"


if __name__ == "__main__":
    sys.exit(main())
