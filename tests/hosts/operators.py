"""Operators: a person with a shell, outside of the cluster, and the study that is sent to it."""

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
Facts = Mapping[str, tuple[object, ...]]
Place = tuple[str, str]
"""A node and the GPUs of it that a run has."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Operator:
    """Types commands; what they print is kept, in order, as the log of a first use."""

    folder: Path
    environment: Mapping[str, str]
    host: Host | None = None
    """The host the shell is on; None: the namespace around all hosts."""

    @classmethod
    def arrives(cls, folder: Path, host: Host | None = None, **environment: str) -> "Operator":
        """Give an operator a folder with the study and its plugin."""
        work, home = folder / "work", folder / "laptop"
        for path in (work, home):
            path.mkdir(parents=True)
        for name in ("paced.yaml", "paced.py"):
            shutil.copy(HERE / name, work)
        path = f"{Path(sys.executable).parent}:/usr/sbin:/usr/bin:/sbin:/bin"
        plain = plain_environment(HOME=str(home), PATH=path, PYTHONPATH=str(REPOSITORY))
        return cls(folder=folder, environment={**plain, **environment}, host=host)

    @property
    def log(self) -> Path:
        """Commands and what they printed."""
        return self.folder / "log.txt"

    def type(self, command: str, code: int = 0, timeout: float = 300) -> str:
        """Run a command of the shell to its end and return all it printed."""
        began = time.monotonic()
        done = subprocess.run(
            self._shell(command), env=self.environment, check=False, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=timeout,
        )  # fmt: skip
        seconds = time.monotonic() - began
        with self.log.open("a") as log:
            log.write(f"$ {command}\n{done.stdout}[exit {done.returncode}, {seconds:.0f} s]\n\n")
        assert done.returncode == code, f"{command} exited with {done.returncode}\n{done.stdout}"
        return done.stdout

    def answers(self, command: str) -> str:
        """Return what a command prints, whatever its exit code; it is not in the log."""
        return subprocess.run(
            self._shell(command), env=self.environment, check=False, text=True, timeout=60,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        ).stdout  # fmt: skip

    def begin(self, command: str) -> "subprocess.Popen[str]":
        """Start a command of the shell in the background."""
        return subprocess.Popen(
            self._shell(command), env=self.environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip

    def _shell(self, command: str) -> list[str]:
        line = ["bash", "-c", f"cd {self.folder / 'work'} && {command}"]
        return line if self.host is None else self.host.enter(*line)


def results(store: Path, *overrides: str) -> tuple[RunResult, ...]:
    """Return what a store holds of every run of the study."""
    use(HERE / "paced.py")
    study = load_study(str(HERE / "paced.yaml"), overrides)
    return read_results(study.runs(), Store(str(store)))


def places_in_use(found: tuple[RunResult, ...]) -> set[Place]:
    """Return nodes and their GPUs on which runs that are not complete stored their last epoch."""
    return {
        (result.stage.environment["node"], result.stage.environment["gpus"])
        for result in found
        if result.stage is not None and result.outcome != "complete"
    }


def facts(found: tuple[RunResult, ...]) -> Facts:
    """Return what is stored of each epoch, by run key: trained again, it has other times."""
    return {result.run.key: result.facts for result in found}


def assert_nothing_trained_twice(before: Facts, after: Facts) -> None:
    """Check that what was stored at some time is the beginning of what is stored later."""
    for key, known in before.items():
        assert after[key][: len(known)] == known, f"epochs of {key} were trained again"
