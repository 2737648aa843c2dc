"""Comparison of bits: train the arms of `arms.yaml` with two commits and compare all bits.

    python -m tests.golden.same_bits --base COMMIT

`mixsweep run` fills three homes: one with the base commit, one with this code, and one with this
code in launches of 1, 2, ... epochs, each of which resumes in a new process from the stored states.
All three must have the same stages, with the same metrics and the same bytes of weights and
optimizer. Exit code 1 means that they differ.

Stores are read here without the project's code, so that a bug in its reader cannot hide a
difference.
"""

import argparse
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.golden.arms import put_arms
from tests.golden.project import data_root, load_study, stage_keys

HERE = Path(__file__).parents[2]

_AT_A_TIME = 2
"""Number of homes that are filled at the same time, each in one slot."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Stage:
    """The content of a store under one stage key."""

    records: list[Any]
    """Epoch and metrics of each epoch."""
    facts: list[Any]
    """Clock readings of each epoch; equal if the epoch was copied from another stage."""
    state: str | None
    """sha256 of the state, already verified."""


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
        last = yaml.safe_load(study.read_text())["base"]["epochs"]
        launches = [tuple(_cut_to(study, epochs)) for epochs in range(1, last + 1)]
        with ThreadPoolExecutor(max_workers=_AT_A_TIME) as pool:
            resumed, base, here = pool.map(
                lambda job: _trained(*job, study),
                [
                    (HERE, place / "resumed", launches),  # it takes longest
                    (base_code, place / "base", [()]),
                    (HERE, place / "here", [()]),
                ],
            )
        differing = list(_compare(study, launches, base, here, resumed))
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


def _cut_to(study: Path, epochs: int) -> Iterator[str]:
    """Yield overrides that end each run after some epochs, or at its next evaluation.

    An arm that sets its own epochs gets no more than these. A switch epoch that a run does not
    reach is moved to its end, which computes the same.
    """
    content = yaml.safe_load(study.read_text())
    yield f"base.epochs={epochs}"
    for arm, values in content["arms"].items():
        every = values.get("eval_every", 1)
        end = min(-(-epochs // every) * every, values.get("epochs", content["base"]["epochs"]))
        if "epochs" in values:
            yield f"arms.{arm}.epochs={end}"
        if "mix.switch_epoch" in values:
            yield f"arms.{arm}.mix.switch_epoch={min(end, values['mix.switch_epoch'])}"


def _trained(
    code: Path, home: Path, launches: Sequence[Sequence[str]], study: Path
) -> dict[str, Stage]:
    """Run the study with the packages in a folder; return the content of its store.

    Args:
        code: Folder of the packages.
        home: Folder for results and for decoded images that only this home uses.
        launches: Overrides of each launch.
        study: The study file.

    Raises:
        SystemExit: If a run fails; the output of the command is printed.
    """
    original = data_root() / "FashionMNIST"
    shutil.copytree(original, home / "data" / original.name, copy_function=os.symlink)
    no_gpu = {"CUDA_VISIBLE_DEVICES": ""}
    environment = _environment(code) | {"MIXSWEEP_DATA": str(home / "data")} | no_gpu
    module = "mixsweep" if (code / "mixsweep" / "__main__.py").exists() else "sweeps.cli"
    for overrides in launches:
        command = [
            sys.executable, "-m", module, "run", str(study), "--home", str(home),
            "--slots", "1", "--gpus-per-run", "0", "--keep-final-states",
            *(part for override in overrides for part in ("--set", override)),
        ]  # fmt: skip
        done = subprocess.run(
            command, cwd=code, env=environment, text=True, capture_output=True, check=False
        )
        if done.returncode != 0:
            said = f"{done.stdout}\n{done.stderr}"
            raise SystemExit(f"{said}\n{home.name}: `mixsweep run` ended with {done.returncode}")
    return dict(_stages(home / "store"))


def _environment(code: Path) -> dict[str, str]:
    """Return this environment without variables that name another cluster or server."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("RAY_", "MLFLOW_"))}
    foreign = ("MIXSWEEP_HOME", "MIXSWEEP_STORE", "MIXSWEEP_OPTUNA")
    kept = {k: v for k, v in kept.items() if k not in foreign}
    return kept | {"PYTHONPATH": str(code), "OMP_NUM_THREADS": "1"}


def _stages(store: Path) -> Iterator[tuple[str, Stage]]:
    """Yield key and content of each stage of a store.

    A manifest is `{"sha256":"<64 hex>",<rest>` with the sha256 of `{<rest>`; the file of a state
    has the sha256 in its name and in its manifest.

    Raises:
        SystemExit: If the sha256 of a file is wrong.
    """
    for file in sorted(store.glob("stages/*/*.json")):
        sealed = file.read_bytes()
        content = json.loads(sealed)
        rest = b"{" + sealed[len(b'{"sha256":"",') + 64 :]
        if content["sha256"] != hashlib.sha256(rest).hexdigest() or content["key"] != file.stem:
            raise SystemExit(f"{file}: damaged")
        state = content["state"] and content["state"]["sha256"]
        if state is not None:
            with (store / f"states/{file.stem[:2]}/{file.stem}-{state}.bin").open("rb") as stream:
                if hashlib.file_digest(stream, "sha256").hexdigest() != state:
                    raise SystemExit(f"{stream.name}: damaged")
        yield file.stem, Stage(records=content["records"], facts=content["facts"], state=state)


def _compare(
    study: Path,
    launches: Sequence[Sequence[str]],
    base: Mapping[str, Stage],
    here: Mapping[str, Stage],
    resumed: Mapping[str, Stage],
) -> Iterator[bool]:
    """Print whether each run is the same in two homes, and yield whether it differs."""
    ends = [_last_keys(study, overrides) for overrides in launches]
    known: set[str] = set()
    for run in load_study(str(study)).runs():
        keys = stage_keys(run.config)
        known.update(keys)
        stored = [key for key in keys if key in base or key in here or key == keys[-1]]
        found = [
            what for key in stored for what in _differences(base=base.get(key), here=here.get(key))
        ]
        yield _say(run.arm, f"{len(stored)} stages as in base", found)

        stops = {end[run.arm] for end in ends} - {keys[-1]}
        found = [
            what
            for key in stored
            for what in _differences(straight=here.get(key), resumed=resumed.get(key))
        ]
        for key in stops:
            stop, end = resumed.get(key), resumed.get(keys[-1])
            if stop is None or end is None or end.facts[: len(stop.facts)] != stop.facts:
                found.append("trained anew instead of resumed")
        yield _say(run.arm, f"resumed {len(stops)} times, as without a stop", found)
    for name, stages in (("base", base), ("here", here)):
        if strangers := sorted(stages.keys() - known):
            yield _say(name, "", [f"stages of no run: {', '.join(strangers)}"])


def _last_keys(study: Path, overrides: Sequence[str]) -> dict[str, str]:
    """Return, for each arm, the stage key at which its run ends in a launch."""
    runs = load_study(str(study), overrides).runs()
    return {run.arm: stage_keys(run.config)[-1] for run in runs}


def _say(name: str, good: str, found: Sequence[str]) -> bool:
    verdict = f"DIFFERS: {'; '.join(found)}" if found else f"equal: {good}"
    sys.stdout.write(f"{name:20} {verdict}\n")
    return bool(found)


def _differences(**stages: Stage | None) -> Iterator[str]:
    """Yield each difference between two stages of one key, as text."""
    (first, one), (second, other) = stages.items()
    if one is None or other is None:
        kept = one or other
        epochs = "the last" if kept is None else f"{len(kept.records)}"
        missing = " and ".join(name for name, stage in stages.items() if stage is None)
        yield f"no stage of {epochs} epochs in {missing}"
        return
    if len(one.records) != len(other.records):
        yield f"{len(one.records)} epochs in {first}, {len(other.records)} in {second}"
        return
    for epoch, (ours, theirs) in enumerate(zip(one.records, other.records, strict=True)):
        before, now = ours["metrics"], theirs["metrics"]
        names = [n for n in sorted(before | now) if before.get(n) != now.get(n)]
        if names:
            values = f"{names[0]} {before.get(names[0])} to {now.get(names[0])}"
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            yield f"{first} to {second}, epoch {epoch}: {values}{more}"
            break
    if one.state != other.state:
        yield f"{first} to {second}: state after {len(one.records)} epochs"


if __name__ == "__main__":
    sys.exit(main())
