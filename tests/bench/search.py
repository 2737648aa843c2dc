"""Search on a formula with a known optimum, and compared with plain Ray Tune.

    python -m tests.bench.search [samplers] [drivers] [--pairs N] [--repetitions N] [--out FOLDER]

1. A formula with a known optimum, 60 points: TPE against random proposals at the same seeds.
2. A real search of a small network, compared with `plain_tune.py`; undisturbed, and killed once.
"""

import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from mixup_core.images.config import TrainConfig
from mixup_core.laws import Beta
from mixup_core.store.checkpoints import Store
from sweeps.reading.study_file import load_study
from sweeps.searching.proposals import Proposals
from sweeps.searching.search_history import read_history
from tests.bench.pairs import arguments_of
from tests.soak.findings import publish

OPTIMUM = 0.10
POINTS, SEEDS, EPOCHS = 4, 2, 10

STUDY = f"""
study: bench
base:
  data: {{name: digits, val_size: 300}}
  model: {{name: mlp}}
  epochs: {EPOCHS}
  batch_size: 64
  eval_every: {EPOCHS}
arms:
  erm: {{mix.law: erm}}
seeds: {SEEDS}
search:
  space:
    mix.law: {{beta: {{log_uniform: [0.1, 32.0]}}}}
    mix.switch_epoch: {{int: [0, {EPOCHS}]}}
  points: {POINTS}
  objective: val/error
"""


def error_of(config: TrainConfig) -> float:
    """Return an error whose minimum, 0.10, is at alpha 4 and switch epoch 7 of 10."""
    law, switch = config.mix.law, config.mix.switch_epoch
    assert isinstance(law, Beta)
    assert switch is not None
    return OPTIMUM + 0.01 * math.log(law.alpha / 4) ** 2 + 0.0016 * (switch - 7) ** 2


def best_of(folder: Path, sampler: str, seed: int, points: int = 60) -> float:
    """Return how far the best of some points is above the optimum, as a fraction of the optimum."""
    file = folder / "bench.yaml"
    file.write_text(STUDY)
    study = load_study(str(file), [f"search.sampler={sampler}", f"search.seed={seed}"])
    assert study.search is not None
    proposals = Proposals(study, str(folder / f"{sampler}-{seed}.log"))
    errors = []
    for _ in range(points):
        point = proposals.ask()
        assert point is not None
        errors.append(error_of(study.search.config_of(point.values)))
        proposals.tell(replace(point, state="complete", objectives=(errors[-1],)))
    return min(errors) / OPTIMUM - 1


def compare_samplers(repetitions: int, out: Path | None) -> None:
    """Publish how far both samplers end above the optimum, paired by seed."""
    with tempfile.TemporaryDirectory() as folder:
        excess = {
            sampler: [best_of(Path(folder), sampler, seed) for seed in range(repetitions)]
            for sampler in ("tpe", "random")
        }
    both = list(zip(excess["tpe"], excess["random"], strict=True))
    ratios = [random / tpe for tpe, random in both]
    figures: dict[str, Any] = {"points": 60, "repetitions": repetitions}
    for sampler, values in excess.items():
        figures[f"{sampler}_excess_over_optimum_percent"] = spread([100 * v for v in values])
    figures["tpe_within_5_percent"] = sum(tpe <= 0.05 for tpe, _ in both)
    figures["tpe_nearer_than_random"] = sum(tpe < random for tpe, random in both)
    figures["random_excess_over_tpe_excess"] = spread(ratios)
    title = "TPE and random proposals on a formula with a known optimum, paired by seed"
    publish("samplers", title, figures, kind="bench-search", out=out)


def compare_drivers(pairs: int, out: Path | None) -> None:
    """Publish wall time, epochs and results of both drivers, undisturbed and killed once."""
    cases: dict[str, list[dict[str, float]]] = {"undisturbed": [], "driver_killed_once": []}
    for pair in range(pairs):
        for case, measured in cases.items():
            measured.append(one_pair(killed=case != "undisturbed", ours_first=pair % 2 == 0))
            sys.stdout.write(f"{case}: {measured[-1]}\n")
            sys.stdout.flush()
    figures: dict[str, Any] = {
        "pairs": pairs, "slots": 1, "points": POINTS, "seeds": SEEDS, "epochs_per_run": EPOCHS,
        "runs_of_mixsweep": (POINTS + 1) * SEEDS, "runs_of_plain_tune": POINTS * SEEDS,
    }  # fmt: skip
    for case, measured in cases.items():
        figures[case] = {name: [round(one[name], 3) for one in measured] for name in measured[0]}
    title = (
        f"A search of {POINTS} points x {SEEDS} seeds by mixsweep, with an arm, MLflow and a "
        "report, and by plain Ray Tune with OptunaSearch, Repeater and MLflow's callback and a new "
        "process for each run, as is its default; one value per pair, in order"
    )
    publish("drivers", title, figures, kind="bench-search", out=out)


def one_pair(*, killed: bool, ours_first: bool) -> dict[str, float]:
    """Return the cost of both drivers for the same search, one after the other."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        (home / "bench.yaml").write_text(STUDY)
        drivers = {"mixsweep": run_mixsweep, "plain_tune": run_plain_tune}
        found = {
            name: drivers[name](home, killed=killed)
            for name in (drivers if ours_first else reversed(drivers))
        }
    ratio = found["mixsweep"]["seconds"] / found["plain_tune"]["seconds"]
    named = {f"{driver}_{n}": v for driver in drivers for n, v in found[driver].items()}
    return {**named, "wall_ratio_mixsweep_to_plain_tune": ratio}


def run_mixsweep(home: Path, *, killed: bool) -> dict[str, float]:
    """Run the search with mixsweep; after a kill, only what was not stored is trained again."""
    store = Store(str(home / "ours" / "store"))
    command = [
        sys.executable, "-m", "mixsweep", "run", str(home / "bench.yaml"),
        "--home", str(home / "ours"), "--slots", "1",
    ]  # fmt: skip
    seconds, done = run(command, lambda: len(store.keys()) - SEEDS, killed=killed)
    url = f"sqlite:///{home / 'ours' / 'optuna.db'}"
    points = read_history(load_study(str(home / "bench.yaml")), url).points
    return {
        "seconds": seconds,
        "exit_code": done.returncode,
        "runs_with_result": len(store.keys()),
        "epochs_stored": sum(stage.epochs for stage in store.stages()),
        "points_complete": sum(point.state == "complete" for point in points),
        "points_left_open": sum(point.state == "open" for point in points),
    }


def run_plain_tune(home: Path, *, killed: bool) -> dict[str, float]:
    """Run the search with plain Ray Tune (`plain_tune.py`)."""
    log = home / "epochs.txt"
    command = [
        sys.executable, str(Path(__file__).with_name("plain_tune.py")), str(home),
        *map(str, (POINTS, SEEDS, EPOCHS)),
    ]  # fmt: skip

    def finished() -> int:
        return len(log.read_text().splitlines()) // EPOCHS if log.exists() else 0

    seconds, done = run(command, finished, killed=killed)
    trained = len(log.read_text().splitlines())
    said = done.stdout.strip().splitlines()[-1] if done.returncode == 0 else ""
    numbers = dict(part.split("=") for part in said.split())
    return {
        "seconds": seconds,
        "exit_code": done.returncode,
        "runs_with_result": int(numbers.get("with_result", 0)),
        "epochs_trained": trained,
        "epochs_trained_twice": trained - POINTS * SEEDS * EPOCHS,
    }


def run(
    command: list[str], progress: Callable[[], int], *, killed: bool
) -> tuple[float, "subprocess.CompletedProcess[str]"]:
    """Run a command, and kill it half-way first if asked.

    Return its wall seconds and its output.
    """
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    started = time.monotonic()
    if killed:
        first = subprocess.Popen(
            command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        while first.poll() is None and progress() < POINTS * SEEDS // 2:
            time.sleep(0.05)
        assert first.poll() is None, "ended before it could be killed"
        first.kill()
        first.wait()
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=1200, check=False
    )
    return time.monotonic() - started, done


def spread(values: Sequence[float]) -> dict[str, float]:
    """Return median, smallest and largest of some values."""
    return {"median": statistics.median(values), "least": min(values), "largest": max(values)}


def main() -> None:
    """Run and publish the parts named on the command line."""
    parser = arguments_of(__doc__)
    parser.add_argument("parts", nargs="*", help="samplers, drivers; default: both")
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--repetitions", type=int, default=20)
    options = parser.parse_args()
    parts = options.parts or ["samplers", "drivers"]
    if "samplers" in parts:
        compare_samplers(options.repetitions, options.out)
    if "drivers" in parts:
        compare_drivers(options.pairs, options.out)


if __name__ == "__main__":
    main()
