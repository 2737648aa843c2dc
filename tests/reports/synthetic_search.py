"""A synthetic search: four points with two parameters, one of them pruned, and a confirmation."""

from dataclasses import replace

from mixup_core.images.config import TrainConfig
from mixup_core.images.data.data_config import DataConfig
from mixup_core.laws import Beta
from sweeps.state.results import RunResult
from sweeps.study.search import (
    Confirmation,
    Patience,
    Point,
    PointState,
    Search,
    SearchHistory,
    SearchStrategy,
    name_of_confirmation,
)
from sweeps.study.space import Integer, Parameter, Real, Space
from sweeps.study.study import Run, Study
from tests.reports.synthetic import NOISE, finish, make_study, with_metrics

MEANS = {"erm": 0.225, "uniform": 0.2, "point 0": 0.21, "point 1": 0.18, "point 3": 0.19}
MEANS |= {name_of_confirmation(arm): mean for arm, mean in MEANS.items()}


def search_study(*objectives: str) -> Study:
    plain = make_study(("erm", "uniform"), seeds=(0, 1, 2))
    arms = {
        arm: replace(config, data=DataConfig(views="concat", val_size=5000, test=False))
        for arm, config in plain.arms.items()
    }
    base: TrainConfig = replace(arms["erm"], mix=replace(arms["erm"].mix, law=Beta(alpha=1.0)))
    space = Space(
        parameters=(
            Parameter(path="mix.law.alpha", distribution=Real(low=0.1, high=32.0, is_log=True)),
            Parameter(path="mix.switch_epoch", distribution=Integer(low=0, high=10)),
        )
    )
    strategy = SearchStrategy(
        objective=objectives or ("val/error",),
        prune=None if objectives else Patience(after=2),
        confirm=Confirmation(seeds=(10, 11, 12, 13)),
    )
    search = Search(base=base, space=space, points=4, strategy=strategy)
    return replace(plain, arms=arms, search=search)


def point(number: int, state: PointState, *objectives: float) -> Point:
    values = {"mix.law.alpha": 0.5 * 4**number, "mix.switch_epoch": 2 + number}
    num_seeds = 2 if state == "pruned" else None
    return Point(
        number=number, values=values, state=state, num_seeds=num_seeds, objectives=objectives
    )


POINTS = (
    point(0, "complete", 0.21), point(1, "complete", 0.18), point(2, "pruned"),
    point(3, "complete", 0.19),
)  # fmt: skip
HISTORY = SearchHistory(points=POINTS)
PARETO = tuple(
    replace(p, objectives=(*p.objectives, 1 - p.objectives[0])) if p.objectives else p
    for p in POINTS
)


def result_of(run: Run) -> RunResult:
    value = MEANS.get(run.arm, 0.3) + 0.1 * NOISE[run.seed % len(NOISE)]
    split = "test" if run.config.data.test else "val"
    metrics = {f"{split}/error": value, f"{split}/nll": 1 - value, "train/loss": 0.1}
    return with_metrics(finish(run, value), lambda record: metrics)


GROWN = search_study().grown(POINTS, POINTS[1])
"""The study with the points of `HISTORY`, of which the second is selected."""
GROWN_RESULTS = tuple(map(result_of, GROWN.runs()))
