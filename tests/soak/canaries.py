"""Canaries: secrets of working addresses are in no file, message or process list.

SQLite ignores unknown keys in the query of an address, so a database with such a key simulates a
server with a password: it works, and every place that records its address is found.
"""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from tests.hostile_addresses import CANARIES
from tests.soak.findings import publish
from tests.soak.place import Place
from tests.ui_server import said_by_ui

_EVERY = 0.2
"""Seconds between two samples of processes and of temporary files."""
_TYPED = 1.0
"""CPU seconds for which a typed command line may be visible, while the interpreter starts."""
COMMANDS = (
    "plan {study}", "run {study} --engine inline", "run {study} --set seeds=2 --slots 1",
    "report {study}", "sync {study}", "status {study} --json", "export {study} --out {home}/e.csv",
    "publish --out {home}/site", "status",
)  # fmt: skip


STUDY = """
study: hidden
base: {data: {name: digits, val_size: 200}, model: {name: mlp}, epochs: 1, batch_size: 512}
arms: {erm: {mix.law: erm}}
seeds: 1
search:
  space: {mix.law: {beta: {log_uniform: [0.5, 2.0]}}}
  points: 1
  objective: val/error
"""


def leaks(text: str) -> bool:
    """Return whether a text contains a canary, in upper or lower case."""
    return any(canary.lower() in text.lower() for canary in CANARIES)


@dataclass(kw_only=True)
class Lookout:
    """Searches process lists and the files of a folder for canaries, during a `with`."""

    folder: Path
    found: set[str] = field(default_factory=set)
    num_looks: int = 0
    typed_for: float = 0.0
    """Largest CPU time of a process whose typed command line was still visible."""

    @contextmanager
    def looking(self) -> Iterator[None]:
        """Search until the `with` ends."""
        is_over = threading.Event()

        def look() -> None:
            while not is_over.wait(_EVERY):
                self._look()

        thread = threading.Thread(target=look)
        thread.start()
        try:
            yield
        finally:
            is_over.set()
            thread.join()

    def _look(self) -> None:
        self.num_looks += 1
        for process in Path("/proc").glob("[0-9]*"):
            for file in ("cmdline", "comm"):
                with suppress(OSError, psutil.Error):
                    line = (process / file).read_bytes().decode(errors="replace")
                    if leaks(line):
                        times = psutil.Process(int(process.name)).cpu_times()
                        self.typed_for = max(self.typed_for, times.user + times.system)
                        if times.user + times.system > _TYPED:
                            self.found.add(f"process list: {line[:300]}")
        self.found |= leaking_files(self.folder)


def leaking_files(folder: Path) -> set[str]:
    """Return the files below a folder with a canary in their name or content."""
    found = set()
    for path in folder.rglob("*"):
        with suppress(OSError):
            content = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
            if leaks(path.name) or leaks(content.decode(errors="replace")):
                found.add(str(path))
    return found


def main() -> None:
    """Run every command and publish; exit with 1 if any secret was found."""
    started, place, wrong, num_commands = time.monotonic(), Place(), list[str](), 0
    home, databases = place.folder / "runs", place.folder / "databases"
    temporary = Path(os.environ["TMPDIR"]) / "t"  # short: sockets lie below it
    for folder in (databases, temporary):
        folder.mkdir()
    study = place.folder / "hidden.yaml"
    study.write_text(STUDY)
    query = f"mode=rwc&uri=true&password={CANARIES[0]}&token={CANARIES[1]}"
    environment = {
        **{k: v for k, v in os.environ.items() if not k.startswith(("RAY_", "MLFLOW_", "MIX"))},
        "MIXSWEEP_HOME": str(home), "TMPDIR": str(temporary),
    }  # fmt: skip
    environment |= {
        "MIXSWEEP_OPTUNA": f"sqlite:///file:{databases}/optuna.db?{query}",
        "MLFLOW_TRACKING_URI": f"sqlite:///file:{databases}/mlflow.db?{query}",
    }
    lookout = Lookout(folder=temporary)
    with lookout.looking():
        for command in COMMANDS:
            arguments = command.format(study=study, home=home).split()
            done = subprocess.run(
                [sys.executable, "-m", "mixsweep", *arguments],
                env=environment, capture_output=True, text=True, check=False, timeout=1200,
            )  # fmt: skip
            num_commands += 1
            said = done.stdout + done.stderr
            wrong += [f"{command} ended with {done.returncode}: {said}"] if done.returncode else []
            wrong += [f"{command} says {said}"] if leaks(said) else []
        code, said = said_by_ui([sys.executable, "-m", "mixsweep"], environment, place.folder)
        wrong += [f"ui ended with {code}: {said}"] if leaks(said) or code not in {0, 2} else []
    files = sum(path.is_file() for path in place.folder.rglob("*"))
    wrong += sorted(lookout.found | leaking_files(place.folder))
    figures = {
        "commands": num_commands + 1,
        "looks_at_process_lists_and_logs": lookout.num_looks,
        "cpu_seconds_until_a_typed_address_is_hidden_at_most": lookout.typed_for,
        "files": files,
        "violations": wrong,
        "minutes": (time.monotonic() - started) / 60,
    }
    publish("canaries", "Commands on databases whose addresses hold secrets", figures)
    print("\n".join(wrong) or "every promise was kept")  # noqa: T201
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
