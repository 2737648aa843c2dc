"""EpochsLog: every epoch that the processes of several launches train, and epochs trained twice.

A launch started with `variables()` logs each run that it plans to train, each epoch that its
processes train, and each one that is stored. An epoch may be trained again only if it was lost with
a killed launch, or was trained before the later launch said that it needs it.
"""

import json
import os
import time
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

_LOG, _LAUNCH, _NAP = "EPOCHS_LOG", "EPOCHS_LAUNCH", "EPOCHS_NAP"
_HOOK = """
import os, sys
from importlib.abc import MetaPathFinder
class Find(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name != "sweeps.running.attempt":
            return None
        sys.meta_path.remove(self)
        import tests.soak.epochs_log
        tests.soak.epochs_log.write_down()
if os.environ.get("EPOCHS_LOG"):
    sys.meta_path.insert(0, Find())
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Counted:
    """Numbers of epochs in a log."""

    trained: int
    distinct: int
    lost: int
    """Epochs trained again because a killed launch had not stored them."""
    passed: int
    """Epochs trained again whose states were deleted before the later launch joined; only records
    were left.
    """
    twice: tuple[str, ...]
    """Epochs trained again without such a reason."""
    by_launch: Mapping[str, int]
    """Epochs that each launch trained, by its name."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EpochsLog:
    """The log of several launches, in a folder."""

    folder: Path

    def variables(self, launch: str, nap: float = 0.0) -> dict[str, str]:
        """Return the environment of a launch.

        Args:
            launch: Name of the launch; two launches of one study have different names.
            nap: Seconds by which each epoch takes longer, so that launches overlap.
        """
        hook = self.folder / "hook"
        hook.mkdir(parents=True, exist_ok=True)
        (hook / "sitecustomize.py").write_text(_HOOK)
        paths = [str(hook), str(Path(__file__).parents[2])]
        log = {_LOG: str(self.folder / "epochs.jsonl"), _LAUNCH: launch, _NAP: str(nap)}
        return {"PYTHONPATH": os.pathsep.join(paths), **log}

    def count(self, killed: Collection[str] = ()) -> Counted:
        """Return the numbers of trained epochs.

        Args:
            killed: Names of the launches that were killed.
        """
        joined: dict[str, int] = {}
        states: dict[str, set[str]] = {}
        stored: set[str] = set()
        trained: dict[str, list[tuple[int, str]]] = defaultdict(list)
        twice: list[str] = []
        lost = passed = 0
        for line, text in enumerate((self.folder / "epochs.jsonl").read_text().splitlines()):
            note = json.loads(text)
            launch = note["launch"]
            if note["what"] == "joined":
                joined.setdefault(launch, line)
                states.setdefault(launch, set(note["keys"]))
            elif note["what"] == "stored":
                stored |= set(note["keys"])
            else:
                key, *later = note["keys"]
                kept = [e for e in trained[key] if key in stored or e[1] not in killed]
                left = states[launch].intersection([key, *later]) if kept else None
                if left or any(joined[launch] < earlier for earlier, _ in kept):
                    twice.append(f"{key} by {launch} and {kept}, states at {left}")
                elif kept:
                    passed += 1
                elif trained[key]:
                    lost += 1
                trained[key].append((line, launch))
        return Counted(
            trained=sum(map(len, trained.values())),
            distinct=len(trained),
            lost=lost,
            passed=passed,
            twice=tuple(twice),
            by_launch=dict(Counter(name for found in trained.values() for _, name in found)),
        )


def write_down() -> None:
    """Let this process log what it plans, trains and stores."""
    from sweeps.leasing.claims import Claims
    from sweeps.running.storing import Storing
    from sweeps.state.passing import OWNER

    log = os.open(os.environ[_LOG], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    usual_add, usual_expect = Storing.add, Claims.expect

    def note(what: str, keys: Iterable[str] = ()) -> None:
        content = {"launch": os.environ[_LAUNCH], "what": what, "keys": list(keys)}
        os.write(log, (json.dumps(content) + "\n").encode())

    def add(self: Storing, process: object, seconds: float) -> None:
        time.sleep(float(os.environ[_NAP]))
        before = self._num_stored
        epoch = len(process.records)  # type: ignore[attr-defined]
        note("trained", self._keys[epoch - 1 :])
        usual_add(self, process, seconds)  # type: ignore[arg-type]
        if self._num_stored > before:
            note("stored", self._keys[: self._num_stored])

    def expect(self: Claims, runs: object) -> None:
        stages = list(self.store.stages())
        usual_expect(self, runs)  # type: ignore[arg-type]
        kept = (s.key for s in stages if s.state is not None and OWNER not in s.environment)
        note("joined", kept)

    Storing.add, Claims.expect = add, expect  # type: ignore[method-assign,assignment]
