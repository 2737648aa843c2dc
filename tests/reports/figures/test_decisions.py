import csv
import io
from dataclasses import replace

import numpy as np

from mixup_core.laws import Midpoint
from mixup_core.problem import problem_of
from mixup_core.store.manifests import EpochFacts, Stage
from mixup_core.theory.moons import MoonsConfig, draw_moons
from reports.figures.canvas import Figure
from reports.figures.decisions import class_shares, draw_decisions
from reports.numbers.runs import arrange
from reports.tables.table import tabulate
from sweeps.state.results import RunResult
from sweeps.study.study import Run, Study


def trained(run: Run) -> RunResult:
    records = tuple(problem_of(run.config).start(run.config, None, "cpu"))
    facts = (EpochFacts(seconds=1.0, stored_at_ms=0),) * len(records)
    stage = Stage(key=run.key, records=records, facts=facts, environment={}, state=None)
    return RunResult(run=run, stage=stage, failure=None)


SMALL = MoonsConfig(points=20, hidden=8, resolution=10, steps_per_epoch=3, epochs=1)
MOONS = Study(
    name="moons",
    description="",
    arms={"erm": SMALL, "midpoint": replace(SMALL, law=Midpoint())},
    seeds=(0, 1),
    baseline="erm",
    source="study: moons\n",
)


def draw(study: Study, results: tuple[RunResult, ...]) -> Figure | None:
    return draw_decisions(arrange(study, results), tabulate(study, results))


def test_the_decision_map_is_drawn_from_stored_boundaries() -> None:
    results = tuple(map(trained, MOONS.runs()))
    figure = draw(MOONS, results)
    assert figure is not None
    rows = list(csv.DictReader(io.StringIO(figure.numbers)))
    assert len(rows) == 2 * 2 * 17
    stored = {
        (r.run.arm, str(r.run.seed), name.removeprefix("boundary/at/"), repr(value))
        for r in results
        for name, value in r.records[-1].metrics.items()
        if name.startswith("boundary/at/")
    }
    drawn = {(r["arm"], r["seed"], f"{float(r['x_2']):g}", r["boundary"]) for r in rows}
    assert drawn == stored
    for said in ("17 values of x_2", "seed 0", "n = 2/2", "a single boundary"):
        assert said in figure.caption
    for said in (b"<!-- erm -->", b"<!-- midpoint -->"):
        assert said in figure.svg


def test_the_decision_map_agrees_with_the_predictions_of_the_network() -> None:
    config = replace(SMALL, points=100, hidden=100, steps_per_epoch=200, lr=0.01)
    result = trained(Run(arm="erm", config=config))
    boundary = {
        float(name.removeprefix("boundary/at/")): value
        for name, value in result.records[-1].metrics.items()
        if name.startswith("boundary/at/")
    }
    points, labels = draw_moons(config)
    said = [
        class_shares([boundary], np.array([x]), np.array([np.clip(y, -1.6, 1.6)]))[0, 0]
        for x, y in points
    ]
    assert np.mean(np.array(said) == labels) > 0.9
