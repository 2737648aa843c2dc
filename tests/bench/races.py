"""Regret against runs of searches on a known optimum whose runs are noisy.

    python -m tests.bench.races [REPETITIONS] [--out FOLDER]

Points by TPE with every seed, with one look, and in a race; successive halving over seeds; and
plain Optuna, one run a trial. All have the same number of runs, and the same formula.
"""

import math
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median

import numpy as np
import optuna

from mixup_core.arrays import Floats
from mixup_core.images.config import TrainConfig
from reports.numbers.summary import t_quantile
from sweeps.reading.study_file import load_study
from sweeps.searching.proposals import Proposals
from sweeps.searching.selection import PooledSpread, is_clearly_worse
from tests.bench.pairs import arguments_of
from tests.bench.search import EPOCHS, OPTIMUM, STUDY, error_of
from tests.soak.findings import publish

SEEDS, NOISE, SHARED = 5, 0.01, 0.01
"""Seeds of a whole point; sd of a run's own error, and of what all runs of a seed share."""
RUNS = (50, 100, 150)
"""Numbers of runs at which the regret is read."""
MOST_POINTS = 60
HALVED = 16
"""Points that successive halving starts with."""

Course = list[tuple[int, float]]
"""Runs so far, and the true excess over the optimum of what would be chosen then."""


class Noisy:
    """The formula, measured with noise; runs of one seed share a part of it."""

    def __init__(self, repetition: int) -> None:
        """Draw what the seeds share."""
        self.rng = np.random.default_rng(repetition)
        self.shared = self.rng.normal(0, SHARED, 1_000)

    def run(self, error: float, seed: int) -> float:
        """Return the measured error of one run."""
        return error + float(self.shared[seed]) + float(self.rng.normal(0, NOISE))


def ours(folder: Path, repetition: int, looks: Sequence[int]) -> Course:
    """Search as `SearchSource` does with one slot; looks are those of `prune`."""
    name = f"{len(looks)}-{repetition}"
    file = folder / "bench.yaml"
    file.write_text(STUDY)
    study = load_study(str(file), [f"search.seed={repetition}", f"search.points={MOST_POINTS}"])
    assert study.search is not None
    proposals = Proposals(study, str(folder / f"{name}.log"))
    noisy, used, course = Noisy(repetition), 0, Course()
    complete: list[tuple[list[float], float]] = []
    while used < RUNS[-1] and (point := proposals.ask()) is not None:
        config = study.search.config_of(point.values)
        assert isinstance(config, TrainConfig)
        error = error_of(config)
        values: list[float] = []
        for seed in range(SEEDS):
            values.append(noisy.run(error, seed))
            if len(values) in looks and complete:
                best = min(complete, key=lambda each: sum(each[0]))[0][: len(values)]
                pooled = PooledSpread.of([each for each, _ in complete]) if len(looks) > 1 else None
                if is_clearly_worse(values, best, points=MOST_POINTS, looks=looks, pooled=pooled):
                    break
        used += len(values)
        if len(values) == SEEDS:
            complete.append((values, error))
            mean = sum(values) / SEEDS
            proposals.tell(replace(point, state="complete", objectives=(mean,)))
        else:
            proposals.tell(replace(point, state="pruned", num_seeds=len(values)))
        chosen = min(complete, key=lambda each: sum(each[0]))
        course.append((used, chosen[1] / OPTIMUM - 1))
    return course


def halving(repetition: int) -> Course:
    """Draw points at random, and double the seeds of the better half until one is left."""
    noisy, used, course = Noisy(repetition), 0, Course()
    best: tuple[float, float] | None = None
    while used < RUNS[-1]:
        errors = [_formula(*_random(noisy.rng)) for _ in range(HALVED)]
        values: list[list[float]] = [[] for _ in errors]
        alive, seeds = list(range(HALVED)), 1
        while alive:
            for place in alive:
                while len(values[place]) < seeds:
                    values[place].append(noisy.run(errors[place], len(values[place])))
                    used += 1
            alive.sort(key=lambda place: float(np.mean(values[place])))
            first = alive[0]
            found = float(np.mean(values[first])), errors[first]
            if seeds == SEEDS or len(alive) == 1:
                best = found if best is None else min(best, found)
                break
            alive, seeds = alive[: len(alive) // 2], min(2 * seeds, SEEDS)
        assert best is not None
        course.append((used, best[1] / OPTIMUM - 1))
    return course


def plain(repetition: int) -> Course:
    """Let Optuna's TPE measure every trial once, each at a seed of its own."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=repetition))
    noisy, course = Noisy(repetition), Course()
    errors: list[float] = []
    for used in range(1, RUNS[-1] + 1):
        trial = study.ask()
        alpha = trial.suggest_float("alpha", 0.1, 32.0, log=True)
        errors.append(_formula(alpha, trial.suggest_int("switch", 0, EPOCHS)))
        study.tell(trial, noisy.run(errors[-1], used))
        course.append((used, errors[study.best_trial.number] / OPTIMUM - 1))
    return course


def _formula(alpha: float, switch: int) -> float:
    return OPTIMUM + 0.01 * math.log(alpha / 4) ** 2 + 0.0016 * (switch - 7) ** 2


def _random(rng: np.random.Generator) -> tuple[float, int]:
    return math.exp(rng.uniform(math.log(0.1), math.log(32))), int(rng.integers(0, EPOCHS + 1))


def regret_at(course: Course, runs: int) -> float:
    """Return the excess of what is chosen after so many runs; the first choice if none is yet."""
    return [excess for used, excess in course if used <= runs or used == course[0][0]][-1]


def main() -> None:
    """Publish the regret of each way, in percent of the optimum."""
    parser = arguments_of(__doc__)
    parser.add_argument("repetitions", nargs="?", type=int, default=20)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ways: Mapping[str, Callable[[int], Course]] = {
            "all_seeds": lambda k: ours(folder, k, ()),
            "one_look_after_2": lambda k: ours(folder, k, (2,)),
            "race_after_2_every_1": lambda k: ours(folder, k, (2, 3, 4)),
            "halving_over_seeds": halving,
            "plain_optuna": plain,
        }
        courses = {
            way: [found(k) for k in range(options.repetitions)] for way, found in ways.items()
        }
    figures: dict[str, object] = {"repetitions": options.repetitions, "seeds_of_a_point": SEEDS}
    for way, found in courses.items():
        for runs in RUNS:
            regrets = np.array([100 * regret_at(course, runs) for course in found])
            figures[f"{way}_regret_percent_at_{runs}_runs"] = _spelled(regrets)
        points = HALVED if way == "halving_over_seeds" else 1
        figures[f"{way}_points_median"] = points * median(
            sum(used <= RUNS[-1] for used, _ in course) for course in found
        )
    title = (
        "Excess over a known optimum, in percent, of what a search chooses after so many noisy "
        "runs: mean with its 95 % interval over repetitions"
    )
    publish("races", title, figures, kind="bench-search", out=options.out)


def _spelled(regrets: Floats) -> str:
    half = t_quantile(len(regrets), 0.95) * regrets.std(ddof=1) / len(regrets) ** 0.5
    return f"{regrets.mean():.1f} [{regrets.mean() - half:.1f}, {regrets.mean() + half:.1f}]"


if __name__ == "__main__":
    main()
