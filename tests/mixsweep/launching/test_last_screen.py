"""The end of a run fits on 40 lines of 100 columns for every bundled study."""

from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest

from mixsweep.launching.conclusion import Conclusion, conclude
from mixsweep.request import Request
from mixup_core.records import EpochRecord
from mixup_core.seeding import stream
from mixup_core.store.manifests import EpochFacts, Failure, Stage
from reports.pages.build import report_screen
from sweeps.machine.home import Home
from sweeps.machine.terminal_text import COLUMNS, width_of
from sweeps.reading.study_file import bundled_names
from sweeps.state.results import RunResult
from sweeps.study.search import Point, SearchHistory
from sweeps.study.study import Run, Study
from tests.bundled import bundled, few

REASON = "RuntimeError: CUDA out of memory.\n" + "Tried to allocate 2.00 GiB.\t" * 20


def _result(study: Study, run: Run, place: int, *, is_lost: bool) -> RunResult:
    """Return a result with values of its own for each metric that counts; a lost run has none."""
    if is_lost:
        failure = Failure(run_key=run.key, kind="failed", message=REASON, epoch=0, attempts=3)
        return RunResult(run=run, stage=None, failure=failure)
    objectives = study.search.strategy.objectives if study.search else ()
    metrics = [study.headline, *(claim.that.metric for claim in study.claims), *objectives]
    drawn = stream(run.seed, "screen", place).random(len(metrics)) + place % 3
    record = EpochRecord(epoch=0, metrics=dict(zip(metrics, map(float, drawn), strict=True)))
    epochs = range(run.config.epochs)
    stage = Stage(
        key=run.key,
        records=tuple(replace(record, epoch=epoch) for epoch in epochs),
        facts=(EpochFacts(seconds=1.0, stored_at_ms=1_700_000_000_000),) * len(epochs),
        environment={"device": "cpu"},
        state=None,
    )
    return RunResult(run=run, stage=stage, failure=None)


def _grown(study: Study) -> tuple[Study, SearchHistory]:
    """Return a study with three points of its search, if it has one, and their confirmation."""
    if study.search is None:
        return study, SearchHistory()
    number = len(study.search.strategy.objectives)
    points = tuple(
        Point(number=n, values=values, state="complete", objectives=(0.1 * (n + 1),) * number)
        for n, values in enumerate(islice(study.search.space.corners(), 3))
    )
    winner = points[0] if study.search.strategy.confirm_seeds else None
    ended = "used up its budget of 2 hours, " + "as its study file says, " * 6
    return study.grown(points, winner), SearchHistory(points=points, ended=ended)


@pytest.mark.parametrize("name", few(bundled_names()))
def test_the_end_of_a_run_fits_on_one_screen(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    plain = bundled(name)
    seeds = plain.seeds[:3]
    if plain.until is None:
        plain = replace(plain, seeds=seeds)
    study, history = _grown(plain)
    results = [
        _result(study, run, place, is_lost=place % 4 == 1) for place, run in enumerate(study.runs())
    ]
    text = report_screen(study, results, history=history if study.search else None)
    request = Request(reference=name, overrides=(), study=study, home=Home(folder=Path("runs")))
    request.__dict__["history"] = history
    folder = Path("runs") / "reports" / name
    conclude(request, results, Conclusion(folder=folder, screen=text))
    lines = [*f"{text}\n".splitlines(), *capsys.readouterr().err.splitlines()]
    assert len(lines) <= 40, len(lines)
    assert max(map(width_of, lines)) <= COLUMNS, max(lines, key=width_of)
    assert lines[0].strip(), "the sentence leads"
