"""EpochsLog: every epoch that the processes of several launches train, and runs trained twice.

A launch started with `variables()` logs each epoch that its processes train, and each run that it
has stored to its end. A whole run may be trained again only if its end was lost with a killed
launch. First epochs that different runs share may be trained by two live launches, also if they are
all epochs of the shorter run.
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
    twice: tuple[str, ...]
    """Whole runs that began although their end was stored, or that two launches trained to their
    end. First epochs that runs of two studies share may be trained by both."""
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
        ends: set[str] = set()  # keys of stored runs
        trained: dict[str, list[str]] = defaultdict(list)
        whole: dict[str, list[str]] = defaultdict(list)  # launches that trained a run to its end
        begun: set[tuple[str, str]] = set()
        twice: list[str] = []
        for text in (self.folder / "epochs.jsonl").read_text().splitlines():
            note = json.loads(text)
            launch, keys = note["launch"], note["keys"]
            if note["what"] == "ended":
                ends.add(keys[-1])
                continue
            if (launch, keys[-1]) not in begun and keys[-1] in ends:
                twice.append(f"{keys[-1]} by {launch}, although it was stored")
            begun.add((launch, keys[-1]))
            trained[keys[0]].append(launch)
            if len(keys) == 1:
                if kept := [name for name in whole[keys[0]] if name not in killed]:
                    twice.append(f"{keys[0]} by {launch} and {kept}")
                whole[keys[0]].append(launch)
        return Counted(
            trained=sum(map(len, trained.values())),
            distinct=len(trained),
            twice=tuple(twice),
            by_launch=dict(Counter(name for found in trained.values() for name in found)),
        )


def write_down() -> None:
    """Let this process log what it trains and stores."""
    from sweeps.running.storing import Storing

    log = os.open(os.environ[_LOG], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    usual_add = Storing.add

    def note(what: str, keys: Iterable[str] = ()) -> None:
        content = {"launch": os.environ[_LAUNCH], "what": what, "keys": list(keys)}
        os.write(log, (json.dumps(content) + "\n").encode())

    def add(self: Storing, process: object, seconds: float) -> None:
        time.sleep(float(os.environ[_NAP]))
        before = self._num_stored
        epoch = len(process.records)  # type: ignore[attr-defined]
        note("trained", self._keys[epoch - 1 :])
        usual_add(self, process, seconds)  # type: ignore[arg-type]
        if self._num_stored > before and self._num_stored == len(self._keys):
            note("ended", self._keys)

    Storing.add = add  # type: ignore[method-assign]
