"""CPU time and memory of the commands plan, status, list and report, as a store grows.

    python -m tests.bench.growth [RUNS ...] [--bucket RUNS ...] [--homes FOLDER] [--out FOLDER]

Stores on this machine's disk and in a bucket (moto) are filled with made-up finished runs; nothing
is trained. CPU time of the bucket's server is not counted.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

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
    "list": ("list",),
    "report": ("report", STUDY, "--set"),
}


def main() -> None:
    """Measure each size, and publish the results with the slopes between sizes."""
    parser = arguments_of(__doc__)
    parser.add_argument("runs", nargs="*", type=int, default=[100, 1_000, 10_000, 100_000])
    parser.add_argument("--bucket", nargs="*", type=int, default=[100, 1_000], metavar="RUNS")
    parser.add_argument("--homes", type=Path, help="folder of homes that are kept, by their runs")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="growth-") as folder:
        homes = options.homes or Path(folder)
        figures = _figures("on disk", {
            runs: measure(homes / str(runs), str(homes / str(runs) / "store"), runs)
            for runs in options.runs
        })  # fmt: skip
        with moto() as clients:
            os.environ.update(clients)
            figures |= _figures("in a bucket", {
                runs: measure(Path(folder) / f"bucket-{runs}", f"s3://studies/{runs}", runs)
                for runs in options.bucket
            })  # fmt: skip
    sizes = ", ".join(f"{runs:,}" for runs in options.runs)
    title = f"Commands that read a store of {sizes} finished runs: CPU seconds and peak memory"
    publish("growth", title, figures, kind="bench", out=options.out)


def _figures(where: str, found: Mapping[int, Mapping[str, float]]) -> dict[str, object]:
    figures: dict[str, object] = {
        f"{runs} runs {where}: {name}": value
        for runs, of_size in found.items()
        for name, value in of_size.items()
    }
    for fewer, more in pairwise(found):
        for name in found[more]:
            slope = (found[more][name] - found[fewer][name]) / (more - fewer)
            figures[f"per run from {fewer} to {more} {where}: {name}"] = slope
    return figures


def measure(home: Path, store: str, runs: int) -> dict[str, float]:
    """Return CPU seconds and peak MB of each command, on a store with `runs` runs."""
    override = f"seeds={runs // ARMS}"
    study, place = load_study(STUDY, [override]), Store(store)
    if len(place.keys()) < runs:
        fill(place, study)
        enter(study, place, "mixsweep run")
    figures = {}
    home.mkdir(parents=True, exist_ok=True)
    for name, arguments in COMMANDS.items():
        line = [*arguments, override] if arguments[-1] == "--set" else list(arguments)
        line += ["--home", str(home), "--store", store]
        cpu, peak = _spent(["-m", "sweeps.cli", *line], home)
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
