"""CPU time and memory of the commands plan, status, list and report, as a store grows.

    python -m tests.bench.growth [RUNS ...] [--bucket RUNS ...] [--out FOLDER]

Stores on this machine's disk and in a bucket (moto) are filled with made-up finished runs; nothing
is trained. A bucket gets a copy of the store on disk. CPU time of the bucket's server is not
counted.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import fsspec

from mixup_core.store.checkpoints import Store
from sweeps.reading.study_file import load_study
from sweeps.state.ledger import enter
from tests.bench.pairs import arguments_of
from tests.bench.scale import ARMS, STUDY
from tests.bench.stored import fill
from tests.object_stores import moto
from tests.soak.findings import publish

COMMANDS: Mapping[str, tuple[str, ...]] = {
    "plan": ("plan", STUDY, "--set"),
    "status": ("status", STUDY, "--set"),
    "list": ("status",),
    "report": ("report", STUDY, "--set"),
}


def main() -> None:
    """Measure each size on disk and in a bucket, and publish."""
    parser = arguments_of(__doc__)
    parser.add_argument("runs", nargs="*", type=int, default=[100, 1_000, 10_000, 100_000])
    parser.add_argument(
        "--bucket", nargs="*", type=int, default=[100, 1_000, 10_000], metavar="RUNS"
    )
    options = parser.parse_args()
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory(prefix="growth-") as folder, moto() as clients:
        os.environ.update(clients)
        for runs in sorted({*options.runs, *options.bucket}):
            home = Path(folder) / str(runs)
            fill_home(home, runs)
            if runs in options.runs:
                found = measure(home, str(home / "store"), runs)
                figures |= {f"{runs} runs on disk: {name}": each for name, each in found.items()}
            if runs in options.bucket:
                url = f"s3://studies/{runs}"
                fsspec.filesystem("s3").put(f"{home}/store/", f"{url}/", recursive=True)
                found = measure(Path(folder) / f"bucket-{runs}", url, runs)
                figures |= {f"{runs} runs in a bucket: {name}": v for name, v in found.items()}
    sizes = ", ".join(f"{runs:,}" for runs in options.runs)
    title = f"Commands that read a store of {sizes} finished runs: CPU seconds and peak memory"
    publish("growth", title, figures, kind="bench", out=options.out)


def fill_home(home: Path, runs: int) -> None:
    """Fill the store of a home with finished runs and the record of their launch."""
    study, store = load_study(STUDY, [f"seeds={runs // ARMS}"]), Store(str(home / "store"))
    fill(store, study)
    enter(study, store, "mixsweep run")


def measure(home: Path, store: str, runs: int) -> dict[str, float]:
    """Return CPU seconds and peak MB of each command, on a store with `runs` runs."""
    override = f"seeds={runs // ARMS}"
    figures = {}
    home.mkdir(parents=True, exist_ok=True)
    for name, arguments in COMMANDS.items():
        line = [*arguments, override] if arguments[-1] == "--set" else list(arguments)
        line += ["--home", str(home), "--store", store]
        cpu, peak = _spent(["-m", "mixsweep", *line], home)
        figures[f"{name}_cpu_seconds"] = cpu
        figures[f"{name}_peak_mb"] = peak
        sys.stdout.write(f"{store}: {name} {cpu:.1f} s, {peak:.0f} MB\n")
        sys.stdout.flush()
    return figures


def _spent(arguments: list[str], folder: Path) -> tuple[float, float]:
    """Return CPU seconds and peak resident MB of a mixsweep command."""
    figures = folder / "spent.json"
    line = [sys.executable, "-I", "-c", _WATCHED, str(figures), sys.executable, *arguments]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "scale" in done.stdout or "alpha" in done.stdout, "the command shows the study"
    cpu, peak = json.loads(figures.read_text(encoding="utf-8"))
    return cpu, peak / 1e3


_WATCHED = """
import json, resource, subprocess, sys
code = subprocess.run(sys.argv[2:]).returncode
used = resource.getrusage(resource.RUSAGE_CHILDREN)
with open(sys.argv[1], "w") as file:
    json.dump([used.ru_utime + used.ru_stime, used.ru_maxrss], file)
sys.exit(code)
"""
"""Source of a small process between bench and command. A command forked from the bench itself would
be charged with the memory of the bench.
"""


if __name__ == "__main__":
    main()
