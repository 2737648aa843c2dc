from dataclasses import replace

import pytest

from mixup_core.records import EpochRecord
from reports.numbers.runs import arrange
from reports.tables.sensitivity import sensitivity_table
from reports.tables.table import tabulate
from sweeps.state.results import RunResult
from sweeps.study.readouts import MeanOfLast
from sweeps.study.study import Study
from tests.reports.synthetic import finish, make_study


def measured(study: Study, averaged: dict[str, float] | None = None) -> list[RunResult]:
    results = []
    for run in study.runs():
        ended = finish(run)
        if averaged is not None:
            assert ended.stage is not None
            *before, last = ended.records
            value = averaged[run.arm] + 0.001 * run.seed
            metrics = {**last.metrics, "test/error_averaged": value}
            records = (*before, EpochRecord(epoch=last.epoch, metrics=metrics))
            ended = replace(ended, stage=replace(ended.stage, records=records))
        results.append(ended)
    return results


AVERAGED = {"erm": 0.2, "midpoint": 0.21, "uniform": 0.19}


def test_the_sensitivity_table_has_every_comparison_under_every_readout() -> None:
    study = make_study()
    results = measured(study, AVERAGED)
    listing = sensitivity_table(study, arrange(study, results), tabulate(study, results))
    assert listing is not None
    assert [cells[:2] for cells in listing.cells] == [
        (f"{arm} minus erm", readout)
        for arm in ("midpoint", "uniform")
        for readout in (
            "last epoch, primary", "mean of the last 3 evaluations", "averaged weights, last epoch",
        )
    ]  # fmt: skip
    assert [record["is_primary"] for record in listing.records] == 2 * [True, False, False]


@pytest.mark.parametrize("epochs", [10, 2])
def test_the_sensitivity_table_uses_the_readout_of_the_study_and_needs_two_readouts(
    epochs: int,
) -> None:
    study = replace(make_study(), readout=MeanOfLast(evaluations=4))
    results = [finish(run, epochs=epochs) for run in study.runs()]
    listing = sensitivity_table(study, arrange(study, results), tabulate(study, results))
    if epochs == 2:
        assert listing is None
    else:
        assert listing is not None
        assert listing.cells[0][1] == "mean of the last 4 evaluations, primary"
