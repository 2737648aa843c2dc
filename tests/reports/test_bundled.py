"""Every bundled study has a report, whatever its arms differ in."""

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from mixup_core.config.written_forms import flatten
from mixup_core.records import EpochRecord
from mixup_core.seeding import stream
from reports.numbers.responses import plane_of, response_of
from reports.pages.build import draft_report
from reports.tables.frames import epochs_frame, runs_frame
from sweeps.reading.study_file import bundled_names
from sweeps.state.results import RunResult
from sweeps.study.study import Run, Study
from tests.bundled import bundled, few
from tests.reports.synthetic import stored

RECORDS = 4


def told(study: Study, run: Run, place: int) -> RunResult:
    """Return a run in which every metric has a different value."""
    names = list(study.problem.metrics)
    drawn = stream(run.seed, "told", place).random((RECORDS, len(names)))
    records = tuple(
        EpochRecord(
            epoch=epoch,
            metrics=dict(zip(names, map(float, drawn[epoch] + epoch), strict=True)),
        )
        for epoch in range(RECORDS)
    )
    return stored(run, records)


@pytest.mark.parametrize("name", few(bundled_names()))
def test_arms_are_drawn_at_the_values_of_their_settings(name: str) -> None:
    study = bundled(name)
    flats = {arm: flatten(config) for arm, config in study.arms.items()}
    response, plane = response_of(study, tuple(flats)), plane_of(study, tuple(flats))
    for line in response.lines.values() if response else ():
        assert [flats[arm][response.path] for arm in line.values()] == list(line)
    for arm in response.levels if response else ():
        assert flats[arm].get(response.path) is None
    for cells in plane.maps.values() if plane else ():
        for place, arm in cells.items():
            assert (flats[arm][plane.across], flats[arm][plane.up]) == place


@pytest.mark.parametrize("name", few(bundled_names()))
def test_frames_survive_a_round_trip_through_parquet(name: str, tmp_path: Path) -> None:
    study = bundled(name)
    study = replace(study, seeds=study.seeds[:1])  # columns are those of the arms
    results = [told(study, run, place) for place, run in enumerate(study.runs())]
    for frame, rows in ((epochs_frame, RECORDS * len(results)), (runs_frame, len(results))):
        written = frame(study, results)
        written.to_parquet(tmp_path / "frame.parquet")
        assert len(written) == rows
        assert pd.read_parquet(tmp_path / "frame.parquet").to_csv() == written.to_csv()


@pytest.mark.long
@pytest.mark.parametrize("done", [0, 1, None])
@pytest.mark.parametrize("name", bundled_names())
def test_a_report_can_be_made_from_any_numbers(name: str, done: int | None, tmp_path: Path) -> None:
    study = bundled(name)
    study = replace(study, seeds=study.seeds[:2])
    results = [told(study, run, place) for place, run in enumerate(study.runs())][:done]
    report = draft_report(study, results, data_checksums={}, command=f"report {name}").write(
        tmp_path
    )
    assert (tmp_path / "report.html").stat().st_size > 10_000
    assert len(report.table.csv().splitlines()) == len(study.primary().arms) + 1


def test_a_bundled_study_has_claims_and_three_seeds_or_states_no_claim() -> None:
    for name in bundled_names():
        study = bundled(name)
        says_why_not = "makes no claim" in " ".join(study.description.split())
        assert bool(study.claims) != says_why_not, name
        assert not study.claims or len(study.seeds) >= 3, name
