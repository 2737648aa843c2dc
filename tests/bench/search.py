"""Benchmarks of searching, run by `make bench-search`; prints what it measured.

`python -m tests.bench.search [samplers] [drivers]` runs one of the two.

1. A formula with a known optimum, 60 points: TPE against random proposals at the same seeds.
2. A real search of a small network against `plain_tune.py`, undisturbed and with a killed driver.
"""

import math
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from mixup_core.checkpoints import Store
from mixup_core.config import TrainConfig
from mixup_core.laws import Beta
from sweeps.proposals import Proposals
from sweeps.study_file import load_study

REPETITIONS = 20
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
    """Return an error that is least, 0.10, at alpha 4 and switch epoch 7 of 10."""
    law, switch = config.mix.law, config.mix.switch_epoch
    assert isinstance(law, Beta)
    assert switch is not None
    return OPTIMUM + 0.01 * math.log(law.alpha / 4) ** 2 + 0.0016 * (switch - 7) ** 2


def best_of(folder: Path, sampler: str, seed: int, points: int = 60) -> float:
    """Return how far above the optimum, as a part of it, the best of some points is."""
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


def compare_samplers() -> None:
    """Print the excess of both samplers over the optimum, paired by seed."""
    with tempfile.TemporaryDirectory() as folder:
        pairs = [
            tuple(best_of(Path(folder), sampler, seed) for sampler in ("tpe", "random"))
            for seed in range(REPETITIONS)
        ]
    tpe, rnd = zip(*pairs, strict=True)
    wins = sum(ours < theirs for ours, theirs in pairs)
    ratio = statistics.median(theirs / ours for ours, theirs in pairs)
    say(
        f"optimum: n = {len(pairs)}, 60 points; excess over the optimum, median (largest): "
        f"tpe {statistics.median(tpe):.2%} ({max(tpe):.2%}), "
        f"random {statistics.median(rnd):.2%} ({max(rnd):.2%}); "
        f"tpe is nearer in {wins} of {len(pairs)}; median ratio random / tpe {ratio:.1f}"
    )


def compare_drivers() -> None:
    """Print epochs trained and wall time of both drivers, undisturbed and killed once."""
    arms = SEEDS * EPOCHS
    for kill in (False, True):
        with tempfile.TemporaryDirectory() as folder:
            home = Path(folder)
            (home / "bench.yaml").write_text(STUDY)
            ours = [
                sys.executable, "-m", "sweeps.cli", "run", str(home / "bench.yaml"),
                "--home", str(home / "ours"), "--slots", "1",
            ]  # fmt: skip
            plain = [
                sys.executable, str(Path(__file__).with_name("plain_tune.py")), str(home),
                *map(str, (POINTS, SEEDS, EPOCHS)),
            ]  # fmt: skip
            store = Store(str(home / "ours" / "store"))
            half = POINTS * SEEDS // 2

            def stored(store: Store = store) -> int:
                return len(store.keys()) - SEEDS

            def logged(log: Path = home / "epochs.txt") -> int:
                return len(log.read_text().splitlines()) // EPOCHS if log.exists() else 0

            case = f"driver killed once after {half} runs" if kill else "undisturbed"
            seconds, said = run(ours, stored, half if kill else None)
            num_runs = len(store.keys())
            say(
                f"{case}: mixsweep {seconds:.0f} s, {num_runs} runs stored of "
                f"{(POINTS + 1) * SEEDS}, {num_runs * EPOCHS} epochs ({arms} of them the arm's)"
                + (f" and at most {EPOCHS} of the run that was killed" if kill else "")
            )
            seconds, said = run(plain, logged, half if kill else None)
            epochs = len((home / "epochs.txt").read_text().splitlines())
            say(
                f"{case}: plain Tune {seconds:.0f} s, {epochs} epochs of {POINTS * SEEDS * EPOCHS} "
                f"wanted; {said}"
            )


def run(command: list[str], progress: Callable[[], int], kill_at: int | None) -> tuple[float, str]:
    """Run a command, once more if it is to be killed, and return its wall seconds and last line."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    started = time.monotonic()
    if kill_at is not None:
        first = subprocess.Popen(
            command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        while first.poll() is None and progress() < kill_at:
            time.sleep(0.05)
        first.send_signal(signal.SIGKILL)
        first.wait()
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=1200, check=False
    )
    seconds = time.monotonic() - started
    lines = (done.stdout if done.returncode == 0 else done.stderr).strip().splitlines()
    return seconds, f"exit {done.returncode}: {lines[-1] if lines else ''}"


def say(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    wanted = sys.argv[1:] or ["samplers", "drivers"]
    if "samplers" in wanted:
        compare_samplers()
    if "drivers" in wanted:
        compare_drivers()
