from dataclasses import replace
from pathlib import Path

import pytest

from mixup_core.store.checkpoints import Store
from mixup_core.store.manifests import Stage
from reports.numbers.runs import runs_csv
from reports.tables.table import tabulate
from sweeps.machine.home import Home
from sweeps.state.results import RunResult, read_results
from sweeps.study.study import Study
from tests.sweeps.tracked import projection_of, reconcile, results_of
from tests.tracked_runs import parse_param, read_runs


@pytest.mark.parametrize("value", [0.1, 1e-300, 3, True, "adam", "03af", (300, 100)])
def test_a_param_is_read_back_with_its_value_and_type(value: object) -> None:
    assert parse_param(str(value)) == value
    assert type(parse_param(str(value))) is type(value)


def test_reading_does_not_create_a_database(tmp_path: Path) -> None:
    with pytest.raises(LookupError, match="nothing is tracked"):
        read_runs(Home(folder=tmp_path).tracking_uri, "table1")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.filterwarnings(
    "ignore:The ``noload`` loader strategy is deprecated:DeprecationWarning"
)
def test_tables_made_from_mlflow_and_from_the_store_have_the_same_bytes(
    study: Study, home: Path, tmp_path: Path
) -> None:
    study = replace(study, seeds=(0, 1, 2))
    store = Store(str(tmp_path))
    for result in results_of(study, 3, 3, 3, 2, 3, 3):
        assert result.stage is not None
        store.write(
            result.stage.key, records=result.records, facts=result.facts,
            environment=result.stage.environment, state=None,
        )  # fmt: skip
    stored = read_results(study.runs(), store)
    reconcile(projection_of(study, home), stored)
    by_key = {t.run_key: t for t in read_runs(Home(folder=home).tracking_uri, study.name)}
    tracked = [
        RunResult(
            run=run,
            stage=Stage(
                key="ab", records=by_key[run.key].records, facts=(), environment={}, state=None
            ),
            failure=None,
        )
        for run in study.runs()
    ]
    ours, theirs = (tabulate(study, results) for results in (tracked, stored))
    assert "2/3" in theirs.markdown()
    assert ours.markdown() == theirs.markdown()
    assert ours.csv() == theirs.csv()
    assert ours.latex() == theirs.latex()
    assert runs_csv(study, tracked) == runs_csv(study, stored)
