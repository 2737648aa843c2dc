"""Sharing: memory of several processes with Fashion-MNIST, loaded by each or mapped."""

import argparse
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from mixup_core.images.data.fetching import data_root, is_present
from tests.soak.findings import publish

_LOAD = """
import sys, time
from pathlib import Path
from mixup_core.images.data.data_config import DataConfig
from mixup_core.images.data.datasets import load
from mixup_core.images.data.mapped import load_mapped
function = {"load": load, "load_mapped": load_mapped}[sys.argv[1]]
data = DataConfig(val_size=int(sys.argv[3]))
print("ready", flush=True)
sys.stdin.readline()
started = time.perf_counter()
splits = function(data, Path(sys.argv[2]))
seconds = time.perf_counter() - started
for part in (splits.train, splits.val, splits.test):
    if part is not None:
        part.pixels.sum(), part.labels.sum()
print(seconds, flush=True)
sys.stdin.readline()
"""


def main() -> None:
    """Measure and publish."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    if not is_present("fashion-mnist", data_root()):
        raise SystemExit("fashion-mnist is absent: mixsweep data fetch fashion-mnist")
    figures = {
        "processes": options.processes,
        "repeats": options.repeats,
        **{
            f"{how}, val_size {val_size}": _measure(function, val_size, warm, options)
            for val_size in (0, 10_000)
            for how, function, warm in (
                ("each alone", "load", True),
                ("mapped, nothing decoded yet", "load_mapped", False),
                ("mapped, decoded before", "load_mapped", True),
            )
        },
    }
    publish(
        "sharing",
        f"{options.processes} processes load Fashion-MNIST at once, {options.repeats} times",
        figures,
    )


def _measure(
    function: str, val_size: int, warm: bool, options: argparse.Namespace
) -> Mapping[str, float]:
    """Return means over repetitions; memory is that of a process beyond its imports."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for repeat in range(options.repeats):
            root = Path(folder) / ("root" if warm else f"root-{repeat}")
            root.mkdir(exist_ok=True)
            if not (root / "FashionMNIST").exists():
                (root / "FashionMNIST").symlink_to(data_root() / "FashionMNIST")
            if warm and repeat == 0:
                _load(function, val_size, root, 1)
            rows.append(_load(function, val_size, root, options.processes))
    means = {name: statistics.mean(row[name] for row in rows) for name in rows[0]}
    return means | {"seconds_sd": statistics.stdev(row["seconds"] for row in rows)}


def _load(function: str, val_size: int, root: Path, count: int) -> dict[str, float]:
    """Return seconds (mean over processes) and MB (sum over processes)."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", _LOAD, function, str(root), str(val_size)],
            text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )
        for _ in range(count)
    ]  # fmt: skip
    for process in processes:
        _hear(process)
    before = [_memory(process.pid) for process in processes]
    for process in processes:
        _say(process)
    seconds = [float(_hear(process)) for process in processes]
    after = [_memory(process.pid) for process in processes]
    for process in processes:
        process.communicate("end\n")
    gained = {
        f"{kind}_mb_of_all": sum(
            now[kind] - was[kind] for was, now in zip(before, after, strict=True)
        )
        for kind in ("pss", "private", "rss")
    }
    return {"seconds": statistics.mean(seconds), "seconds_max": max(seconds), **gained}


def _say(process: "subprocess.Popen[str]") -> None:
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()


def _hear(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def _memory(pid: int) -> dict[str, float]:
    """Return the memory of a process in MB.

    In `pss`, a page shared by n processes counts as 1/n.
    """
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    kb = {name: float(rest.split()[0]) for name, _, rest in (line.partition(":") for line in lines)}
    private = kb["Private_Clean"] + kb["Private_Dirty"]
    return {"pss": kb["Pss"] / 1e3, "private": private / 1e3, "rss": kb["Rss"] / 1e3}


if __name__ == "__main__":
    main()
