"""Landscapes: points with known errors, on which searches can be repeated cheaply.

    python -m tests.bench.landscape HOME

trains every point of the two studies `table-*.yaml` at 40 seeds into a home, unless they are there
already, and writes the validation errors to reports/published/measurements/table-*.csv.
"""

import csv
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import optuna

from mixup_core.store.checkpoints import Store
from sweeps.reading.study_file import load_study
from sweeps.state.results import read_results
from sweeps.study.search import Point, Search
from sweeps.study.study import Study
from tests.soak.findings import MEASUREMENTS

Values = Mapping[str, Any]
ErrorOf = Callable[[Values, int], float]
"""Returns the measured error of a point at a seed."""


class Landscape:
    """Points that were all trained at 40 seeds. Each repetition uses the seeds in its own order."""

    points = 30

    def __init__(self, name: str) -> None:
        """Read the measured errors of a study, such as `table-digits`."""
        self.file = Path(__file__).with_name(f"{name}.yaml")
        with (MEASUREMENTS / f"{name}.csv").open(encoding="utf-8", newline="") as lines:
            rows = list(csv.DictReader(lines))
        self.paths = [path for path in rows[0] if not path.startswith("seed ")]
        self.errors = {
            tuple(float(row[path]) for path in self.paths): np.array(
                [float(row[name]) for name in row if name.startswith("seed ")]
            )
            for row in rows
        }
        self.least = min(float(errors.mean()) for errors in self.errors.values())

    @cached_property
    def search(self) -> Search:
        """The search of the study file."""
        return load_study(str(self.file), []).search

    def study(self, repetition: int, seeds: int) -> Study:
        """Return the study of one repetition, with a search by TPE."""
        points = [f"search.points={self.points}", "search.sampler=tpe"]
        return load_study(str(self.file), [*points, f"search.seed={repetition}", f"seeds={seeds}"])

    def regret(self, values: Values) -> float:
        """Return the mean error over all seeds minus that of the best point, in percent points."""
        return 100 * (float(self._of(values).mean()) - self.least)

    def errors_of(self, repetition: int) -> ErrorOf:
        """Return the errors of the trained runs, with the seeds in the order of this repetition."""
        num_seeds = len(next(iter(self.errors.values())))
        order = np.random.default_rng(repetition).permutation(num_seeds)
        return lambda values, seed: float(self._of(values)[order[seed % num_seeds]])

    def drawn(self, rng: np.random.Generator, number: int) -> Sequence[Values]:
        """Return random points, all different."""
        places = rng.permutation(len(self.errors))[:number]
        keys = list(self.errors)
        return [dict(zip(self.paths, keys[place], strict=True)) for place in places]

    def suggested(self, trial: optuna.Trial) -> Values:
        """Return a point suggested by Optuna, without mixsweep."""
        return {
            parameter.path: trial.suggest_categorical(parameter.path, among.choices)
            if hasattr(among, "choices")
            else trial.suggest_int(parameter.path, among.low, among.high, step=among.step)  # type: ignore[union-attr, arg-type, call-arg]
            for parameter in self.search.space.parameters
            for among in (parameter.distribution,)
        }

    def _of(self, values: Values) -> np.ndarray:
        return self.errors[tuple(float(values[path]) for path in self.paths)]


def export(name: str, home: Path) -> None:
    """Train a study into a home unless it is stored there, and write its errors as a table."""
    file = Path(__file__).with_name(f"{name}.yaml")
    command = [sys.executable, "-m", "mixsweep", "run", str(file), "--engine", "inline"]
    subprocess.run([*command, "--home", str(home)], check=True)
    study, store = load_study(str(file), []), Store(str(home / "store"))
    paths = [parameter.path for parameter in study.search.space.parameters]
    points = [
        Point(number=number, values=values, state="complete")
        for number, values in enumerate(study.search.space.grid())
    ]
    grown = study.grown(points)
    with (MEASUREMENTS / f"{name}.csv").open("w", encoding="utf-8", newline="") as lines:
        writer = csv.writer(lines)
        writer.writerow([*paths, *(f"seed {seed}" for seed in study.seeds)])
        for point in points:
            results = read_results(grown.runs_of(point.arm), store)
            errors = [result.records[-1].metrics["val/error"] for result in results]
            writer.writerow([
                *(point.values[path] for path in paths), *(f"{error:.6g}" for error in errors)
            ])  # fmt: skip


if __name__ == "__main__":
    for table in ("table-digits", "table-fashion-mnist"):
        export(table, Path(sys.argv[1]))
