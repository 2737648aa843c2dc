"""Damage: files of a finished home are damaged, and commands must repair them or name them.

A command must never print a traceback, hang, or change another file of the report; `mixsweep run`
may write the report again, with the same table.
"""

import argparse
import random
import re
import shutil
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from tests.command_server import CommandServer
from tests.conftest import CommandLine
from tests.damages import DAMAGES
from tests.mixup_core.small_files import fill
from tests.soak.findings import publish
from tests.soak.place import Place

COMMANDS = (
    "plan {study}", "status {study}", "run {study} --engine inline", "report {study}",
    "report {study} --set seeds=1", "sync {study}", "store verify", "store prune {study} --yes",
    "status",
)  # fmt: skip
MOST_LINES = 5
"""Largest number of lines of a refusal."""

_PROGRESS = re.compile(r"[\w ]+(, \d+ s)?")
"""Line of a command that takes long, such as `writing the report, 9 s`; a message has a colon."""


def judge(
    file: Path, command: str, code: int, said: str, sound: Mapping[str, bytes], report: Path
) -> str | None:
    """Return what is wrong with the end of a command on a damaged file; None if nothing is."""
    if code not in {0, 1, 2}:  # a command that hangs is killed
        return f"exit {code}: {said[-300:]}"
    if "Traceback" in said:
        return f"traceback: {said.strip().splitlines()[-1]}"
    # Photos count as one file: their study knows no more than the digest of all.
    name = "photos" if file.suffix == ".png" and "photos" in file.parts else file.stem.split("-")[0]
    if code == 2 and name not in said:
        return f"the file is not named: {said[-300:]}"
    lines = [line for line in said.splitlines() if line and not _PROGRESS.fullmatch(line)]
    if code == 2 and len(lines) > MOST_LINES:
        return f"more than {MOST_LINES} lines: {said[-300:]}"
    if not command.startswith(("run", "report")):
        kept = set(sound) - {file.name}
    else:  # other images are another study
        is_same = code == 0 and "seeds=1" not in command and file.suffix != ".png"
        kept = {"table.csv", "runs.csv"} if is_same else set()
    changed = {name for name in kept if (report / name).read_bytes() != sound[name]}
    return f"exit {code}, and other bytes in {', '.join(sorted(changed))}" if changed else None


def make(home: Path) -> CommandLine:
    """Train a study of images of one's own, and return the command line on its home."""
    for split, first, count in (("train", 0, 8), ("test", 16, 4)):
        fill(home / "photos" / split, first, cat=count, dog=count)
    shutil.copy(Path(__file__).with_name("damage-grid.yaml"), home / "damage-grid.yaml")
    return CommandLine(home=home / "runs", data=home / "data", extra={})


def main() -> None:
    """Judge cells drawn at random and publish the results; exit with 1 if one is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng, started = random.Random(options.seed), time.monotonic()
    home = Place().folder / "home"
    finished, study = home.with_name("finished"), str(home / "damage-grid.yaml")
    report = home / "runs" / "reports" / "damage-grid"
    codes, wrong = Counter[str](), list[str]()
    with CommandServer() as server:
        mixsweep = make(home)
        assert server.run(["run", study, "--engine", "inline"], mixsweep.environment())[0] == 0
        shutil.copytree(home, finished)
        sound = {path.name: path.read_bytes() for path in report.glob("*.*")}
        files = sorted(
            path.relative_to(home)
            for folder in ("runs", "data", "photos")
            for path in (home / folder).rglob("*")
            if path.is_file()
        )
        for _ in range(options.cells):
            file, damage = home / rng.choice(files), rng.choice(list(DAMAGES))
            command = rng.choice(COMMANDS)
            shutil.rmtree(home)
            shutil.copytree(finished, home)
            DAMAGES[damage](file)
            line = command.format(study=study).split()
            code, out, err = server.run(line, mixsweep.environment())
            codes[f"{command}: {code}"] += 1
            told = judge(file, command, code, out * (code == 1) + err, sound, report)
            if told is not None:
                wrong.append(f"{file.relative_to(home)}, {damage}, {command}: {told}")
                print(wrong[-1], flush=True)  # noqa: T201
    figures = {
        "cells": options.cells,
        "files": len(files),
        "exit_codes": dict(sorted(codes.items())),
        "violations": wrong,
        "minutes": (time.monotonic() - started) / 60,
        "seed": options.seed,
    }
    publish("damage", f"{options.cells} cells of file x damage x command", figures)
    raise SystemExit(bool(wrong))


if __name__ == "__main__":
    main()
