"""Error rates of verdicts, families, exact limits, marks and pruning, by simulation.

    python -m tests.reports.numbers.error_rates 20000

prints the table of docs/explanation/error-rates.md. A rate is the fraction of simulated studies in
which mixsweep states something wrong; the truth of each case is just where its claim becomes wrong.
"""

import sys
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from mixup_core.images.config import TrainConfig
from reports.numbers.arms import ArmRow, equals, mark_best
from reports.numbers.comparison import contrast
from reports.numbers.families import family_of
from reports.numbers.judging import judge
from reports.numbers.spelling import markdown_grid
from reports.numbers.summary import Measure, summarise
from sweeps.searching.selection import is_clearly_worse
from sweeps.study.claims import Claim, StatedComparison
from sweeps.study.study import Study

SEEDS = 5
METRIC = "train/loss"
"""A metric without bounds that is no fraction."""
CLASSES = 12
ARMS = ("a", "b", "c", "d")

Rng = np.random.Generator
Trial = Callable[[Rng], bool]
"""Function that simulates one study, and returns whether a wrong statement was made."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """A kind of statement with its simulated truth, and the largest allowed error rate."""

    name: str
    truth: str
    trial: Trial
    limit: float


def cases() -> Iterator[Case]:
    """Yield every case of the table."""
    for name, truth, that, shift, wrong in _relations():
        trial = _relation(that, shift, wrong)
        yield Case(name=name, truth=f"{truth}; {wrong} is wrong", trial=trial, limit=0.025)
    for name, truth, num_true in (
        ("four claims of a study", "none is true", 0),
        ("four claims of a study", "two are true by far, two are not", 2),
    ):
        yield Case(name=name, truth=truth, trial=_family(num_true), limit=0.05)
    for share in (0.5, 0.9):
        truth = f"{CLASSES} classes, each learned at {share}; holds is wrong"
        yield Case(name=f"greater than {share}", truth=truth, trial=_classes(share), limit=0.025)
    truth = "equal networks on 360 images; holds is wrong"
    yield Case(name="less, errors counted", truth=truth, trial=_counted, limit=0.025)
    truth = "4 equal arms; the first is not marked"
    yield Case(name="marks of the best arm", truth=truth, trial=_unmarked, limit=0.05)
    for seeds in (3, 5, 10):
        truth = f"20 equal points at {seeds} seeds; any is pruned"
        yield Case(name="pruning", truth=truth, trial=_pruned(seeds), limit=0.05)


def rate(case: Case, number: int) -> float:
    """Return the fraction of simulated studies in which a wrong statement was made."""
    rng = np.random.default_rng(zlib.crc32(f"{case.name}: {case.truth}".encode()))
    return sum(case.trial(rng) for _ in range(number)) / number


def _relations() -> Iterator[tuple[str, str, dict[str, Any], float, str]]:
    """Yield name, truth and claim of each relation, the true difference, and the wrong verdict."""
    pair, margin = ("a", "b"), 0.02
    yield "less", "a = b", {"less": pair}, 0.0, "holds"
    yield "less", "a just below b", {"less": pair}, 0.0, "fails"
    yield "greater", "a = b", {"greater": pair}, 0.0, "holds"
    yield "greater", "a just above b", {"greater": pair}, 0.0, "fails"
    for name, sign in (("at_least", -1), ("at_most", 1)):
        that = {name: pair, "margin": margin}
        yield name, "a at the margin, outside", that, sign * margin, "holds"
        yield name, "a at the margin, inside", that, sign * margin, "fails"
    for side, sign in (("lower", -1), ("upper", 1)):
        that = {"within": pair, "margin": margin}
        yield "within", f"a at the {side} margin, outside", that, sign * margin, "holds"
        yield "within", f"a at the {side} margin, inside", that, sign * margin, "fails"
    yield "less, a number", "a = 1", {"less": ("a", 1.0)}, 0.0, "holds"
    yield "greater, twice", "a = 2 b", {"greater": pair, "factor": 2.0}, 1.0, "holds"
    difference = {"less": (("a", "b"), ("c", "d"))}
    yield "less, of differences", "a - b = c - d", difference, 0.0, "holds"
    difference = {"within": (("a", "b"), ("c", "d")), "margin": margin}
    yield "within, of differences", "at the margin, outside", difference, margin, "holds"


def _study(*thats: dict[str, Any]) -> Study:
    claims = tuple(
        Claim(
            says=f"claim {place}", source="simulated", that=StatedComparison(metric=METRIC, **that)
        )
        for place, that in enumerate(thats)
    )
    configs = {arm: TrainConfig(epochs=place + 1, batch_size=10) for place, arm in enumerate(ARMS)}
    return Study(
        name="simulated", description="simulated", arms=configs, seeds=tuple(range(SEEDS)),
        baseline="a", source="study: simulated\n", claims=claims,
    )  # fmt: skip


def _values(rng: Rng, shifts: dict[str, float]) -> dict[str, dict[int, float]]:
    """Return values by arm and seed: 1, the arm's shift, noise of the seed, noise of the run."""
    of_seeds = rng.normal(scale=0.02, size=SEEDS)
    of_runs = rng.normal(scale=0.01, size=(len(ARMS), SEEDS))
    values = 1 + np.array([[shifts.get(arm, 0.0)] for arm in ARMS]) + of_seeds + of_runs
    return {arm: dict(enumerate(row)) for arm, row in zip(ARMS, values.tolist(), strict=True)}


def _relation(that: dict[str, Any], shift: float, wrong: str) -> Trial:
    study = _study(that)

    def trial(rng: Rng) -> bool:
        values = _values(rng, {"a": shift})
        (verdict,) = judge(study, lambda _: values)
        return verdict.verdict == wrong

    return trial


def _family(num_true: int) -> Trial:
    """Return claims that each of four arms is below 1; arms of true claims are far below."""
    study = _study(*({"less": (arm, 1.0)} for arm in ARMS))
    shifts = dict.fromkeys(ARMS[:num_true], -0.2)

    def trial(rng: Rng) -> bool:
        values = _values(rng, shifts)
        verdicts = judge(study, lambda _: values)
        wrong = ["fails"] * num_true + ["holds"] * (len(ARMS) - num_true)
        return any(v.verdict == said for v, said in zip(verdicts, wrong, strict=True))

    return trial


def _classes(share: float) -> Trial:
    that = StatedComparison(metric=METRIC, greater=("a", share))
    measure = Measure(least=0.0, most=1.0, size=CLASSES)

    def trial(rng: Rng) -> bool:
        learned = rng.binomial(CLASSES, share, SEEDS) / CLASSES
        found = contrast([(1.0, dict(enumerate(map(float, learned))), measure)])
        return that.judge(*(found.interval(0.95) or (-np.inf, np.inf))) == "holds"

    return trial


def _counted(rng: Rng) -> bool:
    that = StatedComparison(metric=METRIC, less=("a", "b"))
    hard = rng.random(360) ** 4
    errors = (rng.random((2, SEEDS, 360)) < hard).mean(axis=2)
    ours, theirs = (dict(enumerate(map(float, row))) for row in errors)
    measure = Measure(least=0.0, most=1.0, size=360)
    found = contrast([(1.0, ours, measure), (-1.0, theirs, measure)])
    return that.judge(*(found.interval(0.95) or (-np.inf, np.inf))) == "holds"


def _unmarked(rng: Rng) -> bool:
    study = _study()
    values = {
        arm: {seed: 0.2 + value / 10 for seed, value in by_seed.items()}
        for arm, by_seed in _values(rng, {}).items()
    }
    headline = study.headline
    rows = [
        ArmRow(
            arm=arm, n=SEEDS, seeds_expected=SEEDS, diverged=0,
            summaries={headline: summarise(list(by_seed.values()))},
        )
        for arm, by_seed in values.items()
    ]  # fmt: skip
    equal = equals(study)
    family = family_of([(arm, "a") for arm in ARMS[1:]], values, equal)
    first = mark_best(rows, values, equal, family, study)[0]
    return not (first.is_best or first.is_close)


def _pruned(seeds: int) -> Trial:
    def trial(rng: Rng) -> bool:
        points = 0.2 + rng.normal(scale=0.01, size=(20, seeds))
        best, any_pruned = points[0], False
        for point in points[1:]:
            any_pruned |= is_clearly_worse(list(point), list(best), points=20)
            best = point if point.mean() < best.mean() else best
        return any_pruned

    return trial


def table(number: int) -> str:
    """Return all cases with their rates as Markdown."""
    rows = [
        (case.name, case.truth, f"{100 * rate(case, number):.2f}", f"{100 * case.limit:g}")
        for case in cases()
    ]
    return markdown_grid([("claim", "simulated truth", "wrong, %", "at most, %"), *rows])


if __name__ == "__main__":
    sys.stdout.write(table(int(sys.argv[1])) + "\n")
