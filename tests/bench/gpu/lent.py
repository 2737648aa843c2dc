"""Lent GPU: train what is missing of some studies in a few minutes, and keep it as archives.

    python3 -m tests.bench.gpu.lent --seconds 540 --records RECORDS --out OUT STUDY...

The machine needs PyTorch and no Ray, MLflow or Optuna. RECORDS is a folder of archives of earlier
loans (`mixsweep share`), so that only missing runs are trained. Several processes train at once,
under NVIDIA's MPS where it is installed. OUT gets STUDY.mixsweep.zip and STUDY.txt, the table, for
each study. No run starts that would end after the given seconds, less those for the archives.
"""

import argparse
import os
import platform
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import ExitStack
from importlib import resources
from pathlib import Path

import torch
import yaml

from tests.bench.gpu.sharing import mps

_SECONDS_TO_ARCHIVE = 25.0
_COMMAND = (sys.executable, "-m", "mixsweep")


def main() -> int:
    """Return 0 if every study is complete, and 1 if runs are missing."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "studies", nargs="+", metavar="STUDY", help="bundled studies, the most important first"
    )
    parser.add_argument("--seconds", type=float, required=True, help="for the whole command")
    parser.add_argument("--processes", type=int, default=2, help="runs at a time (default: 2)")
    parser.add_argument("--records", type=Path, help="folder of archives of earlier loans")
    parser.add_argument("--out", type=Path, required=True, help="folder for archives and tables")
    parser.add_argument("--home", type=Path, required=True, help="folder for states; may be lost")
    given = parser.parse_args()
    end = time.monotonic() + given.seconds - _SECONDS_TO_ARCHIVE
    given.out.mkdir(parents=True, exist_ok=True)
    for archive in sorted(given.records.glob("*.mixsweep.zip") if given.records else ()):
        _mixsweep("add", str(archive), "--home", str(given.home))
    with ExitStack() as stack:
        variables: Mapping[str, str] = {}
        if torch.cuda.is_available() and given.processes > 1:
            try:
                variables = stack.enter_context(mps(torch.device("cuda")))
            except (OSError, subprocess.SubprocessError) as error:
                sys.stderr.write(f"without MPS: {error}\n")
        for study in given.studies:
            left = end - time.monotonic()
            if left > 0:
                _train(study, given.processes, given.home, left, variables)
    missing = [_keep(study, given.home, given.out) for study in given.studies]
    return max(missing)


def _train(
    study: str, processes: int, home: Path, seconds: float, variables: Mapping[str, str]
) -> None:
    """Train the missing runs of a study in several processes, which claim one run after another.

    A study has one driver at a time, so each process trains the study under a name of its own. Keys
    of runs do not contain the name.
    """
    text = yaml.safe_load(resources.files("sweeps.studies").joinpath(f"{study}.yaml").read_text())
    drivers = []
    for part in range(processes):
        file = home / "parts" / f"{study}-part{part}.yaml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(yaml.safe_dump(text | {"study": file.stem}, sort_keys=False))
        command = [*_COMMAND, "run", str(file), "--engine", "inline", "--until", f"{seconds:.0f}"]
        command += ["--home", str(home / file.stem), "--store", str(home / "store")]
        drivers.append(
            subprocess.Popen(command, env={**os.environ, **variables}, stdout=subprocess.DEVNULL)
        )
    for driver in drivers:
        driver.wait()


def _keep(study: str, home: Path, out: Path) -> int:
    """Write the table and the archive of a study; return 1 if runs are missing."""
    report = _mixsweep("report", study, "--home", str(home))
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU"
    date = time.strftime("%Y-%m-%d", time.gmtime())
    made = f"{device}, Python {platform.python_version()}, torch {torch.__version__}, {date}"
    (out / f"{study}.txt").write_text(f"{report.stdout}\n{made}\n")
    archive = str(out / f"{study}.mixsweep.zip")
    return _mixsweep("share", study, "--home", str(home), "--out", archive, "--force").returncode


def _mixsweep(*arguments: str) -> "subprocess.CompletedProcess[str]":
    done = subprocess.run([*_COMMAND, *arguments], stdout=subprocess.PIPE, text=True, check=False)
    sys.stdout.write(done.stdout)
    sys.stdout.flush()
    return done


if __name__ == "__main__":
    sys.exit(main())
