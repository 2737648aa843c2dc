"""Operators: a simulated person with a shell outside the cluster, who sends a study to it."""

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mixup_core.plugins.loading import use
from mixup_core.store.checkpoints import Store
from sweeps.reading.study_file import load_study
from sweeps.state.results import RunResult, read_results
from tests.hosts.host import Host, plain_environment

HERE = Path(__file__).parent
STUDY = ("paced.yaml", "--plugin", "paced.py")
REPOSITORY = HERE.parents[1]
HELD = Path("/mnt/held")
"""While this file exists, runs of the study wait; `paced.py` has the same path."""
Facts = Mapping[str, tuple[object, ...]]
Place = tuple[str, str]
"""A node, and the GPUs on it that a run has."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Operator:
    """Types commands; commands and output are kept in order, as the log of a first use."""

    folder: Path
    environment: Mapping[str, str]
    host: Host | None = None
    """Host of the shell; None: the namespace around all hosts."""

    @classmethod
    def arrives(cls, folder: Path, host: Host | None = None, **environment: str) -> "Operator":
        """Give the operator a folder with the study and its plugin."""
        work, home = folder / "work", folder / "laptop"
        for path in (work, home):
            path.mkdir(parents=True)
        for name in ("paced.yaml", "paced.py"):
            shutil.copy(HERE / name, work)
        HELD.unlink(missing_ok=True)
        path = f"{Path(sys.executable).parent}:/usr/sbin:/usr/bin:/sbin:/bin"
        packages = os.pathsep.join([str(REPOSITORY), *_other_packages()])
        plain = plain_environment(HOME=str(home), PATH=path, PYTHONPATH=packages)
        return cls(folder=folder, environment={**plain, **environment}, host=host)

    def hold(self) -> None:
        """Make runs wait after their tenth epoch until `release`, so that all train at once."""
        HELD.touch()

    def release(self) -> None:
        """Let the runs go on."""
        HELD.unlink()

    @property
    def log(self) -> Path:
        """Commands and their output."""
        return self.folder / "log.txt"

    def type(self, command: str, code: int = 0, timeout: float = 900) -> str:
        """Run a shell command to its end and return its output."""
        began = time.monotonic()
        done = self._run(command, timeout)
        self.note(command, done.stdout, f"exit {done.returncode}", time.monotonic() - began)
        assert done.returncode == code, f"{command} exited with {done.returncode}\n{done.stdout}"
        return done.stdout

    def note(self, command: str, printed: str, end: str, seconds: float) -> None:
        """Add a command that has ended to the log."""
        with self.log.open("a") as log:
            log.write(f"$ {command}\n{printed.rstrip()}\n[{end}, {seconds:.0f} s]\n\n")

    def first_use(self, file: str, border: str) -> str:
        """Return the log as text for publication, without paths of this machine.

        Args:
            file: The file of `cluster/` that was used.
            border: Sentence that says which part could not run here.
        """
        text = re.sub(r"\x1b\[[0-9;]*[A-Za-z]|\r(?=\n)", "", self.log.read_text())
        places = {
            str(self.folder / "work"): "~/mixup", str(self.folder / "laptop"): "~",
            str(self.folder): "/shared", str(REPOSITORY): "~/mixsweep",
            **dict.fromkeys(_other_packages(), "~/packages"),
            sys.prefix: "~/mixsweep/.venv", os.environ.get("TMPDIR", "/mnt"): "/shared",
        }  # fmt: skip
        for place in sorted(places, key=len, reverse=True):
            text = text.replace(place, places[place])
        blocks = [_shortened(block) for block in text.strip().split("\n\n$ ")]
        head = f"First use of cluster/{file}, written by its test. {border}"
        return f"{head}\n\n" + "\n\n$ ".join(blocks) + "\n"

    def answers(self, command: str) -> str:
        """Return the output of a command with any exit code; it is not added to the log."""
        return self._run(command, 60).stdout

    def _run(self, command: str, timeout: float) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            self._shell(command), env=self.environment, check=False, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=timeout,
        )  # fmt: skip

    def begin(self, command: str) -> "subprocess.Popen[bytes]":
        """Start a shell command in the background; its output goes to `said`."""
        with self._said.open("w") as said:
            return subprocess.Popen(
                self._shell(command), env=self.environment, stdout=said, stderr=subprocess.STDOUT
            )

    @property
    def said(self) -> str:
        """Output so far of the last command that was started in the background."""
        return self._said.read_text()

    @property
    def _said(self) -> Path:
        return self.folder / "said.txt"

    def _shell(self, command: str) -> list[str]:
        line = ["bash", "-c", f"cd {self.folder / 'work'} && {command}"]
        return line if self.host is None else self.host.enter(*line)


def _other_packages() -> list[str]:
    """Return the folders of PYTHONPATH besides the repository, such as a cloud's library."""
    folders = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    return [folder for folder in folders if folder and Path(folder) != REPOSITORY]


def _shortened(block: str, first: int = 25, last: int = 25) -> str:
    """Return a command and its output, with the middle of long outputs cut out."""
    lines = [line.rpartition("\r")[2][:200].rstrip() for line in block.splitlines()]
    left_out = len(lines) - first - last
    if left_out > 0:
        lines[first:-last] = [f"[... {left_out} lines ...]"]
    return "\n".join(lines)


def results(store: Path, *overrides: str) -> tuple[RunResult, ...]:
    """Return the stored results of every run of the study."""
    use(HERE / "paced.py")
    study = load_study(str(HERE / "paced.yaml"), overrides)
    return read_results(study.runs(), Store(str(store)))


def places_in_use(found: tuple[RunResult, ...]) -> set[Place]:
    """Return the nodes and GPUs of runs in training, from their last stored epochs."""
    return {
        (result.stage.environment["node"], result.stage.environment["gpus"])
        for result in found
        if result.stage is not None and result.outcome != "complete"
    }


def facts(found: tuple[RunResult, ...]) -> Facts:
    """Return the clock readings of each stored epoch, by run key; retraining would change them."""
    return {result.run.key: result.facts for result in found}


def assert_nothing_trained_twice(before: Facts, after: Facts) -> None:
    """Check that earlier results are the beginning of later results."""
    for key, known in before.items():
        assert after[key][: len(known)] == known, f"epochs of {key} were trained again"
