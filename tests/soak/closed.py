"""Closed: whatever the values of Ray's variables, only the loopback is listened on.

In a network namespace with a routable interface, `run`, `report`, `ui` and `submit` (nobody answers
it) run with each value. Sockets are sampled all the time; afterwards folders, processes and decoys
are checked.
"""

import argparse
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from tests.faults.exposure import (
    ROUTABLE,
    Decoys,
    Watch,
    digests,
    hostile,
    nameservers,
    open_folders,
    routable_interface,
)
from tests.faults.launches import lasting
from tests.soak.findings import publish
from tests.soak.place import Place
from tests.ui_server import said_by_ui

_DEAD = (f"{ROUTABLE}:6379", "127.0.0.1:9", "10.9.8.9:6379", "no.example:6379")
_JUNK = ("junk", "auto", "ray://127.0.0.1:10001", f"http://{ROUTABLE}:8265", "0.0.0.0:0", ":", " ")
_SWITCHES = ("0", "1", "-1", "true", "junk", "0.0.0.0", ROUTABLE, "::", "/no/such/place", "")
"""Values for all variables of Ray except the address."""
_OF_RAY = {"169.254.169.254|80"} | {f"{name}|53" for name in nameservers()}
"""Address that Ray's dashboard contacts even if its usage statistics are off."""
_FOREIGN = ("numpy", "torch", "sklearn", "ray", "mlflow", "optuna", "matplotlib", "usercustomize")
"""Decoy modules in the working directory; none is imported on purpose, each would leave a trace.
"""
_VERBS = ("run", "report", "submit", "ui")
_PATIENCE = 1200.0
_STUDY = """
study: closed
description: A study of one short run, for the soak.
problem: alternating-line
base: {law: erm, hidden: 64, epochs: 20}
arms: {erm: {law: erm}}
seeds: 1
"""


@dataclass(kw_only=True)
class Trial:
    """One set of variables, with its own home, working directory and temporary folder."""

    name: str
    variables: Mapping[str, str]
    folder: Path
    wrong: list[str] = field(default_factory=list)
    listening: set[str] = field(default_factory=set)
    """Sockets that were seen."""
    codes: dict[str, int] = field(default_factory=dict)

    @property
    def _environment(self) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("RAY_", "MLFLOW_", "MIX"))}
        places = {
            "MIXSWEEP_HOME": str(self.folder / "runs"), "TMPDIR": str(self.folder / "t"),
            "MIXSWEEP_DATA": str(self.folder / "data"), "OMP_NUM_THREADS": "1",
        }  # fmt: skip
        return {**kept, **places, **self.variables}

    def run(self) -> None:
        """Run the commands one after another."""
        desk, temporary = self.folder / "desk", self.folder / "t"
        for folder in (desk, temporary):
            folder.mkdir(parents=True)
        (desk / "closed.yaml").write_text(_STUDY)
        for name in _FOREIGN:
            mark = self.folder / f"imported-{name}"
            (desk / f"{name}.py").write_text(f"open({str(mark)!r}, 'a').close()\n")
        on_desk = digests(desk)
        with Decoys(folder=temporary) as decoys:
            for verb in _VERBS:
                self._try(verb, decoys)
        if digests(desk) != on_desk:
            self.wrong.append("the working directory was changed")
        self.wrong += [f"{mark.name} of the desk" for mark in self.folder.glob("imported-*")]

    def _try(self, verb: str, decoys: Decoys) -> None:
        before, processes = open_folders(self.folder), set(psutil.process_iter())
        with Watch() as watch:
            self.codes[verb], said = self._said(verb)
        self.listening |= watch.listening
        peers = {p for p in watch.peers if p.replace("|", ":") not in _DEAD and p not in _OF_RAY}
        opened = lasting(lambda: open_folders(self.folder) - before)
        changed = lasting(decoys.changed)
        found = {
            f"listens at {sorted(watch.reachable)}": watch.reachable,
            f"sends to {sorted(peers)}": peers,
            f"left open {opened}": opened,
            f"changed {changed}": changed,
            f"ended with {self.codes[verb]}: {said[-300:]}": self.codes[verb] not in _CODES[verb]
            and _BUSY not in said,
            f"says {said[-1000:]}": "Traceback" in said,
        }
        left = lasting(lambda: [p for p in psutil.process_iter() if p not in processes])
        found[f"left {[_named(p) for p in left]}"] = left
        wrong = [f"{verb} {what}" for what, is_so in found.items() if is_so]
        self.wrong += wrong
        sys.stdout.write(f"{self.name}: {verb} ended with {self.codes[verb]} {wrong}\n")
        sys.stdout.flush()

    def _said(self, verb: str) -> tuple[int, str]:
        desk = self.folder / "desk"
        if verb == "ui":
            return said_by_ui(_MIXSWEEP, self._environment, desk)
        address = ["--address", "http://127.0.0.1:1"] if verb == "submit" else []
        done = subprocess.run(
            [*_MIXSWEEP, verb, "closed.yaml", *address],
            env=self._environment,
            cwd=desk, capture_output=True, text=True, errors="replace",
            timeout=_PATIENCE, check=False,
        )  # fmt: skip
        return done.returncode, done.stdout + done.stderr


_MIXSWEEP = (sys.executable, "-P", "-m", "mixsweep")
"""Command line like the installed command: the working directory is not on the module path."""
_BUSY = "Ray did not start on this machine"
"""Message if a busy machine leaves Ray too little time to start."""
_CODES: Mapping[str, set[int]] = {
    "run": {0, 2}, "report": {0, 1, 2}, "submit": {0, 2}, "ui": {0, 2},
}  # fmt: skip
"""Allowed exit codes; the report of a study that was refused has missing runs or nothing to read.
"""


def values(folder: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield names and values of variables to try.

    Args:
        folder: Used for values that are folders.
    """
    yield "nothing set", {}
    for address in ("", "local", *_DEAD, *_JUNK):
        yield f"RAY_ADDRESS={address}", {"RAY_ADDRESS": address}
    for value in _SWITCHES:
        address = "local" if value == "0" else ""
        yield f"RAY_*={value}, RAY_ADDRESS={address}", {**hostile(value), "RAY_ADDRESS": address}
    shut = folder / "shut"
    shut.mkdir(mode=0o500)
    for place in ("here", "../up", "/no/such/place", str(shut), str(folder / ("x" * 60))):
        names = ("RAY_TMPDIR", "RAY_TEMP_DIR", "RAY_LOG_DIR", "RAY_SESSION_DIR")
        yield f"RAY_TMPDIR={place[-20:]}", dict.fromkeys(names, place)


def _named(process: psutil.Process) -> str:
    with suppress(psutil.Error):
        return " ".join(process.cmdline())[:100]
    return str(process)


def main() -> None:
    """Try all values and publish; exit with 1 if anything was open, changed or left behind."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    started, place, codes = time.monotonic(), Place(), Counter[str]()
    until = started + 60 * parser.parse_args().minutes
    wrong: list[str] = []
    listening: set[str] = set()
    commands, names = 0, []
    with routable_interface():
        for number, (name, variables) in enumerate(values(place.folder)):
            if time.monotonic() > until:
                break
            folder = Path(os.environ["TMPDIR"]) / f"{number}"  # short: sockets lie below it
            trial = Trial(name=name, variables=variables, folder=folder)
            trial.run()
            commands += len(trial.codes)
            listening |= trial.listening
            names.append(f"{name}: {trial.codes}")
            codes.update(f"{verb}: {code}" for verb, code in trial.codes.items())
            wrong += [f"{name}: {what}" for what in trial.wrong]
    figures = {
        "values": len(names),
        "commands": commands,
        "sockets_seen": len(listening),
        "addresses_listened_at": sorted({name.partition("|")[0] for name in listening}),
        "exit_codes": dict(sorted(codes.items())),
        "exit_codes_by_value": names,
        "violations": wrong,
        "minutes": (time.monotonic() - started) / 60,
    }
    publish("closed", "run, report, ui and submit with hostile values of Ray's variables", figures)
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
