"""Regret of search methods against runs, on two trained studies.

    python -m tests.bench.races [REPETITIONS] [--on LANDSCAPE ...] [--orders N] [--out FOLDER]

Methods: TPE with every seed of every point, with one test for pruning, and as a race; successive
halving over seeds; and plain Optuna with one run per trial. All get the same number of runs on the
same landscape.
"""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median

import matplotlib as mpl
import numpy as np
import optuna
from matplotlib import pyplot as plt
from scipy.stats import binomtest

from mixup_core.arrays import Floats
from reports.numbers.summary import t_quantile
from sweeps.searching.proposals import Proposals
from sweeps.searching.selection import PooledSpread, is_clearly_worse
from tests.bench.landscape import ErrorOf, Landscape, Values
from tests.bench.pairs import arguments_of
from tests.soak.findings import MEASUREMENTS, publish

SEEDS = 5
"""Number of seeds of a point that is not dropped."""
RUNS = (50, 100, 150)
"""Numbers of runs at which the regret is read."""
HALVED = 16
"""Number of points with which successive halving starts."""
RULES: Mapping[str, tuple[int, ...]] = {
    "all_seeds": (), "one_look_after_2": (2,), "race_after_2_every_1": (2, 3, 4),
}  # fmt: skip
"""Numbers of seeds at which each rule may drop a point."""
TITLES = {"digits": "digits", "fashion-mnist": "Fashion-MNIST"}

Course = list[tuple[int, float]]
"""Regret of the point that would be chosen, after each number of runs."""


class Race:
    """A search whose points are measured and dropped as `SearchSource` does with one slot."""

    def __init__(self, landscape: Landscape, error_of: ErrorOf, looks: Sequence[int]) -> None:
        """Start without any point.

        Args:
            landscape: The landscape to search.
            error_of: Errors of the runs of this repetition.
            looks: Numbers of seeds at which a point may be dropped.
        """
        self._landscape, self._error_of, self._looks = landscape, error_of, looks
        self._complete: list[tuple[list[float], Values]] = []
        self.used = 0

    def measure(self, values: Values) -> list[float]:
        """Return the errors of a point; fewer than `SEEDS` if it was dropped."""
        errors: list[float] = []
        for seed in range(SEEDS):
            errors.append(self._error_of(values, seed))
            if len(errors) in self._looks and self._complete and self._is_worse(errors):
                break
        self.used += len(errors)
        if len(errors) == SEEDS:
            self._complete.append((errors, values))
        return errors

    @property
    def chosen(self) -> Values:
        """The point with the lowest mean."""
        return min(self._complete, key=lambda each: sum(each[0]))[1]

    def _is_worse(self, errors: list[float]) -> bool:
        best = min(self._complete, key=lambda each: sum(each[0]))[0][: len(errors)]
        pooled = None
        if len(self._looks) > 1:
            pooled = PooledSpread.of([each for each, _ in self._complete])
        return is_clearly_worse(
            errors, best, points=self._landscape.points,
            size=self._landscape.search.base.data.val_size,
            looks=self._looks, pooled=pooled,
        )  # fmt: skip


def ours(landscape: Landscape, folder: Path, repetition: int, looks: Sequence[int]) -> Course:
    """Search by TPE with one slot; `looks` are the numbers of seeds given by `prune`."""
    study = landscape.study(repetition, SEEDS)
    proposals = Proposals(study, str(folder / f"{len(looks)}-{repetition}.log"))
    race, course = Race(landscape, landscape.errors_of(repetition), looks), Course()
    while race.used < RUNS[-1] and (asked := proposals.ask()):
        (point,) = asked
        errors = race.measure(point.values)
        if len(errors) == SEEDS:
            mean = sum(errors) / SEEDS
            proposals.tell(replace(point, state="complete", objectives=(mean,)))
        else:
            proposals.tell(replace(point, state="pruned", num_seeds=len(errors)))
        course.append((race.used, landscape.regret(race.chosen)))
    return course


def halving(landscape: Landscape, repetition: int) -> Course:
    """Search by successive halving: random points, then more seeds for the better half."""
    error_of, rng = landscape.errors_of(repetition), np.random.default_rng(repetition)
    used, course = 0, Course()
    best: tuple[float, float] | None = None
    while used < RUNS[-1]:
        points = landscape.drawn(rng, HALVED)
        errors: list[list[float]] = [[] for _ in points]
        alive, seeds = list(range(HALVED)), 1
        while alive:
            for place in alive:
                while len(errors[place]) < seeds:
                    errors[place].append(error_of(points[place], len(errors[place])))
                    used += 1
            alive.sort(key=lambda place: float(np.mean(errors[place])))
            found = float(np.mean(errors[alive[0]])), landscape.regret(points[alive[0]])
            if seeds == SEEDS or len(alive) == 1:
                best = found if best is None else min(best, found)
                break
            alive, seeds = alive[: len(alive) // 2], min(2 * seeds, SEEDS)
        course.append((used, best[1]))
    return course


def plain(landscape: Landscape, repetition: int) -> Course:
    """Search by Optuna's TPE alone, in which each trial is one run at its own seed."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=repetition))
    error_of, course = landscape.errors_of(repetition), Course()
    regrets: list[float] = []
    for used in range(1, RUNS[-1] + 1):
        trial = study.ask()
        values = landscape.suggested(trial)
        regrets.append(landscape.regret(values))
        study.tell(trial, error_of(values, used))
        course.append((used, regrets[study.best_trial.number]))
    return course


def regret_at(course: Course, runs: int) -> float:
    """Return the regret of the point chosen after `runs` runs; before that, of the first choice."""
    return [regret for used, regret in course if used <= runs or used == course[0][0]][-1]


def lost(landscape: Landscape, looks: Sequence[int], orders: int) -> tuple[int, float]:
    """Return in how many orders of all points a rule drops the best one, and its mean runs."""
    dropped = used = 0
    for repetition in range(orders):
        race = Race(landscape, landscape.errors_of(repetition), looks)
        rng = np.random.default_rng(repetition)
        for values in landscape.drawn(rng, landscape.points):
            errors = race.measure(values)
            dropped += len(errors) < SEEDS and landscape.regret(values) == 0
        used += race.used
    return dropped, used / orders


def main() -> None:
    """Publish the regret of each method on each landscape, and how often rules drop the best."""
    parser = arguments_of(__doc__)
    parser.add_argument("repetitions", nargs="?", type=int, default=20)
    parser.add_argument("--orders", type=int, default=1_000, help="of all points, for each rule")
    parser.add_argument("--on", nargs="+", choices=TITLES, default=[*TITLES])
    options = parser.parse_args()
    out = options.out or MEASUREMENTS
    out.mkdir(parents=True, exist_ok=True)
    for name in options.on:
        landscape = Landscape(f"table-{name}")
        courses = _courses(landscape, options.repetitions)
        figures: dict[str, object] = {
            "repetitions": options.repetitions, "seeds_of_a_point": SEEDS,
        }  # fmt: skip
        for way, found in courses.items():
            for runs in RUNS:
                regrets = np.array([regret_at(course, runs) for course in found])
                figures[f"{way}: regret_at_{runs}_runs"] = _spelled(regrets)
            points = HALVED if way == "halving_over_seeds" else 1
            figures[f"{way}: points_median"] = points * median(
                sum(used <= RUNS[-1] for used, _ in course) for course in found
            )
        figures |= _kept(landscape, options.orders)
        draw(courses, out / f"races-{name}.svg")
        title = (
            f"30 points of {TITLES[name]}, trained once at 40 seeds: regret, in percentage points, "
            "of what a search chooses after so many runs; mean with its 95 % interval over "
            "repetitions"
        )
        publish(f"races-{name}", title, figures, kind="bench-search", out=options.out)


def _kept(landscape: Landscape, orders: int) -> dict[str, object]:
    """Return how often each rule drops the best point, and the runs it needs for all points."""
    figures: dict[str, object] = {"orders": orders}
    for rule, looks in RULES.items():
        if looks:
            dropped, used = lost(landscape, looks, orders)
            low, high = binomtest(dropped, orders).proportion_ci(method="exact")
            share = f"{100 * dropped / orders:.1f} [{100 * low:.1f}, {100 * high:.1f}]"
            figures[f"{rule}: best_left_percent"] = share
            figures[f"{rule}: runs_for_all_points"] = used
    return figures


def _courses(landscape: Landscape, repetitions: int) -> dict[str, list[Course]]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)

        def by_rule(looks: Sequence[int]) -> Callable[[int], Course]:
            return lambda repetition: ours(landscape, folder, repetition, looks)

        ways: dict[str, Callable[[int], Course]] = {
            **{rule: by_rule(looks) for rule, looks in RULES.items()},
            "halving_over_seeds": lambda repetition: halving(landscape, repetition),
            "plain_optuna": lambda repetition: plain(landscape, repetition),
        }
        return {way: [found(k) for k in range(repetitions)] for way, found in ways.items()}


def draw(courses: Mapping[str, Sequence[Course]], file: Path) -> None:
    """Draw the mean regret against runs, with its 95 % interval over repetitions."""
    mpl.rcParams["svg.hashsalt"] = "races"
    figure, panel = plt.subplots(figsize=(6, 3.6), layout="constrained")
    runs = np.arange(10, RUNS[-1] + 1, 10)
    for way, found in courses.items():
        regrets = np.array([[regret_at(course, n) for n in runs] for course in found])
        mean, half = regrets.mean(axis=0), _half(regrets)
        (line,) = panel.plot(runs, mean, label=way.replace("_", " "))
        panel.fill_between(runs, mean - half, mean + half, alpha=0.15, color=line.get_color())
    panel.set(xlabel="runs", ylabel="regret, percentage points")
    panel.set_ylim(bottom=0)
    panel.legend(fontsize="small")
    figure.savefig(file, metadata={"Date": None})
    plt.close(figure)


def _half(regrets: Floats) -> Floats:
    spread = regrets.std(axis=0, ddof=1) / len(regrets) ** 0.5
    return np.asarray(t_quantile(len(regrets), 0.95) * spread)


def _spelled(regrets: Floats) -> str:
    half = float(_half(regrets))
    return f"{regrets.mean():.2f} [{regrets.mean() - half:.2f}, {regrets.mean() + half:.2f}]"


if __name__ == "__main__":
    main()
