"""Surroundings: every command on a small home, in unusual but legal environments."""

import argparse
import itertools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import mlflow.environment_variables

from reports.numbers.machine_paths import text_elsewhere
from tests.faults.exposure import ray_variables
from tests.soak.findings import publish
from tests.soak.place import Place
from tests.soak.warm import Warm
from tests.ui_server import said_by_ui

_FAULTS = Path(__file__).parents[1] / "faults"
_PATIENCE = 240.0
COMMANDS = (
    "plan {study}", "run {study} --engine inline", "status {study} --json", "report {study}",
    "sync {study}", "report {study} --epochs {out}", "status", "store list {study}", "store verify",
    "data list", "plan", "schema", "ui",
)  # fmt: skip
FEW = ("run {study} --engine inline", "report {study}", "status {study} --json", "status")
"""Commands that read and write most; used if a surrounding is one of many of its kind."""
_STARTS_ITSELF = (
    "import subprocess, sys\n"
    "try:\n    subprocess.run([sys.executable, '-c', ''], check=True)\n"
    "except OSError:\n    sys.exit(1)\n"
)
ON_RAY = "run {study} --slots 1 --set seeds=1 --set base.draws=1001"
ODD = "é 'x' \"y\" #%?&[1]$HOME\\"
"""Name of a folder beside the home; `{folder}` in a value is the folder of both."""
_JUNK = ("0", "1", "-1", "junk", "/no/such/place")
_ADDRESSES = {
    "MLFLOW_TRACKING_URI", "MLFLOW_REGISTRY_URI", "MLFLOW_BACKEND_STORE_URI", "RAY_ADDRESS",
}  # fmt: skip
"""Variables that are read on purpose; other tests cover them."""
_PYTHON = {
    "PYTHONWARNINGS": "error", "PYTHONOPTIMIZE": "2", "PYTHONUTF8": "0", "PYTHONDEVMODE": "1",
    "PYTHONSAFEPATH": "1", "PYTHONUNBUFFERED": "1", "PYTHONNOUSERSITE": "1", "PYTHONHASHSEED": "7",
    "PYTHONFAULTHANDLER": "1", "PYTHONASYNCIODEBUG": "1", "PYTHONMALLOC": "malloc",
    "PYTHONSTARTUP": "/no/such/file", "PYTHONIOENCODING": "ascii", "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONBREAKPOINT": "no.such", "PYTHONPYCACHEPREFIX": "/no/such/place",
}  # fmt: skip
"""Values with which an interpreter starts; mixsweep never sees other values."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Surrounding:
    """An environment."""

    name: str
    variables: Mapping[str, str | None] = field(default_factory=dict)
    """Values to set; None unsets a variable."""
    prefix: Sequence[str] = ()
    """A command that runs the command which follows it."""
    commands: Sequence[str] = COMMANDS

    def tried(self, folder: Path) -> Iterator[tuple[str, int, str]]:
        """Yield each command with its exit code and output.

        The commands are forks of one interpreter, which has imported everything in the environment.

        Args:
            folder: A folder to create; everybody may pass through its parents.
        """
        for made in (folder, folder / "tmp", folder / ODD):
            made.mkdir(parents=True)
            made.chmod(0o777)
        own = {"MIXSWEEP_HOME": str(folder / "runs"), "TMPDIR": str(folder / "tmp")}
        given = {k: v and v.replace("{folder}", str(folder)) for k, v in self.variables.items()}
        environment = {k: v for k, v in ({**os.environ, **own} | given).items() if v is not None}
        mixsweep = [*self.prefix, sys.executable, "-m", "mixsweep"]
        # A user who may not start this interpreter has neither servers nor workers.
        can_start = subprocess.run([*self.prefix, sys.executable, "-c", _STARTS_ITSELF]).returncode
        without = () if can_start == 0 else ("ui", ON_RAY)
        with Warm.started(self.prefix, environment) as warm:
            for command in self.commands:
                if command in without:
                    continue
                if command == "ui":  # its server is another program
                    yield "ui", *said_by_ui(mixsweep, environment, Path("/"))
                    continue
                study, out = _FAULTS / "closed-form.yaml", folder / "out.csv"
                words = command.format(study=study, out=out).split()
                if "{study}" in command and "--set" not in words and words[0] != "store":
                    words += ["--set", "base.draws=1000"]
                ended = warm.run(words, environment, patience=_PATIENCE, folder="/")
                code = -signal.SIGKILL if ended.code is None else ended.code
                yield words[0], code, ended.out + ended.err


def surroundings() -> Iterator[Surrounding]:
    """Yield every environment; one of each kind is tested with Ray too."""
    return itertools.chain(_places(), _users(), _networks(), _locales(), _families())


_WITH_RAY = (*COMMANDS, ON_RAY)


def _places() -> Iterator[Surrounding]:
    for place in ("/no/such/place", "here", "/etc/passwd", "/proc", None):
        yield Surrounding(name=f"TMPDIR={place}", variables={"TMPDIR": place}, commands=_WITH_RAY)
    odd = f"{{folder}}/{ODD}"
    for names in (("HOME",), ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "TMPDIR")):
        own = {"MIXSWEEP_DATA": None, "MIXSWEEP_HOME": f"{odd}/runs"}
        yield Surrounding(
            name=f"{', '.join(names)} with odd characters",
            variables=own | dict.fromkeys(names, odd),
            commands=_WITH_RAY,
        )
    for home in ("", "/no/such/place", "/etc/passwd", "relative"):
        own = {"HOME": home, "MIXSWEEP_DATA": None}
        yield Surrounding(name=f"HOME={home}", variables=own, commands=FEW)


def _users() -> Iterator[Surrounding]:
    stranger = ("setpriv", "--reuid=12345", "--regid=12345", "--clear-groups")
    for home in ("/tmp", None):
        yield Surrounding(
            name=f"a user without a name, HOME={home}", variables={"HOME": home},
            prefix=stranger, commands=_WITH_RAY,
        )  # fmt: skip
    for mask in ("000", "027", "077", "777"):
        under = ("sh", "-c", f'umask {mask} && exec "$@"', "sh")
        yield Surrounding(name=f"umask {mask}", prefix=under, commands=_WITH_RAY)


def _networks() -> Iterator[Surrounding]:
    names = ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
    for proxy in ("http://127.0.0.1:9", "junk"):
        variables = dict.fromkeys(names, proxy)
        yield Surrounding(name=f"proxies {proxy}", variables=variables, commands=_WITH_RAY)


def _locales() -> Iterator[Surrounding]:
    for locale in ("C", "POSIX", "tr_TR.UTF-8", "de_DE.ISO-8859-1", "no.such"):
        own = {"LC_ALL": locale, "LANG": locale}
        yield Surrounding(name=f"LC_ALL={locale}", variables=own, commands=FEW)
    for terminal in ("dumb", "no-such"):
        variables = {"TERM": terminal, "COLUMNS": "0", "LINES": "junk"}
        yield Surrounding(name=f"TERM={terminal}", variables=variables, commands=FEW)


def _families() -> Iterator[Surrounding]:
    families = {
        "MLFLOW_*": {n for n in vars(mlflow.environment_variables) if n.startswith("MLFLOW_")},
        "RAY_*": ray_variables(),
        "OPTUNA_*": {"OPTUNA_STORAGE", "OPTUNA_STUDY", "OPTUNA_VERBOSITY", "OPTUNA_DEBUG"},
    }
    for family, names in families.items():
        for value in _JUNK:
            yield Surrounding(
                name=f"{family}={value}",
                variables=dict.fromkeys(sorted(names - _ADDRESSES), value),
                commands=_WITH_RAY if value == "junk" else FEW,
            )
    for value in ("", *_JUNK):  # only a launch with Ray imports Ray Tune
        variables = dict.fromkeys(sorted(ray_variables("TUNE_")), value)
        yield Surrounding(name=f"TUNE_*={value}", variables=variables, commands=(ON_RAY,))
    for name, value in _PYTHON.items():
        yield Surrounding(name=f"{name}={value}", variables={name: value}, commands=FEW)


def main() -> None:
    """Try all and publish; exit with 1 after a traceback or an unexpected exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=90)
    parser.add_argument("--only", default="", help="text in the names of what is tried")
    asked = parser.parse_args()
    started = time.monotonic()
    until = started + 60 * asked.minutes
    place, wrong, refused = Place(), list[str](), list[str]()
    num_commands = num_surroundings = 0
    place.folder.chmod(0o755)
    for surrounding in surroundings():
        if time.monotonic() > until or asked.only not in surrounding.name:
            continue
        num_surroundings += 1
        folder = Path(tempfile.mkdtemp(dir=place.folder))
        folder.chmod(0o755)
        allowed = {0, 2}
        for verb, code, said in surrounding.tried(folder / "s"):
            num_commands += 1
            if (verb, code) == ("run", 2):  # nothing is stored then, so reports are incomplete
                allowed.add(1)
            end = text_elsewhere(f": {said.strip()}")[-300:].removeprefix(": ")
            line = f"{surrounding.name}: {verb} ended with {code}: {end}"
            if "Traceback" in said or "an error in mixsweep" in said or code not in allowed:
                wrong.append(line)
                sys.stdout.write(f"{line}\n")
            elif code == 2:
                refused.append(line)
        sys.stdout.write(f"{surrounding.name}: tried\n")
        sys.stdout.flush()
        shutil.rmtree(folder)
    figures = {
        "surroundings": num_surroundings,
        "of": sum(1 for _ in surroundings()),
        "commands_in_them": num_commands,
        "refused_with_a_reason": refused,
        "violations": wrong,
        "minutes": (time.monotonic() - started) / 60,
    }
    publish("surroundings", "Every command in environments that are no fault of a user", figures)
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
