"""Homes written by earlier commits can be read and extended by the present code.

Each commit has a folder with study files, store, reports without pictures, and databases as SQL
text. Changes that later versions make to a home are kept, or refused in one line.
"""

import csv
import gzip
import json
import shutil
import sqlite3
from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mixup_core.problem import problem_of
from mixup_core.store.checkpoints import Store
from sweeps.leasing.lease import Lease
from sweeps.reading.study_file import load_study
from sweeps.running.assignment import Assignment
from sweeps.running.storing import Storing
from sweeps.searching.search_history import read_history
from sweeps.searching.selection import grown_study
from sweeps.state.ledger import launches
from sweeps.state.results import read_predictions, read_results
from sweeps.state.stages import plan_study
from tests.conftest import CommandLines
from tests.mixup_core.store.stored_files import reseal

HOMES = sorted(path.parent for path in Path(__file__).with_name("homes").glob("*/old.yaml"))
NEWEST = Path(__file__).with_name("homes") / "9f88350"
"""The newest of the stored homes; it has a ledger, predictions and a search."""
KEPT = 0
"""Seed at which the final states were kept."""


@pytest.fixture(
    params=[
        pytest.param(home, id=home.name, marks=[] if home == NEWEST else pytest.mark.long)
        for home in HOMES
    ]
)
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Return a home that an earlier commit wrote."""
    return copied(request.param, tmp_path / "home")


def copied(home: Path, place: Path) -> Path:
    """Return a copy of a home, with databases made from their SQL text."""
    shutil.copytree(home, place)
    for dumped in place.glob("*.sql.gz"):
        with closing(sqlite3.connect(dumped.with_name(dumped.name[: -len(".sql.gz")]))) as database:
            database.executescript(gzip.decompress(dumped.read_bytes()).decode())
    return place


def rows_of(report: Path) -> dict[str, Mapping[str, str]]:
    """Return each row of `runs.csv` by its run key."""
    with (report / "runs.csv").open(newline="") as file:
        return {row["run_key"]: row for row in csv.DictReader(file)}


def tracked(database: Path) -> tuple[Counter[str], set[tuple[Any, ...]]]:
    """Return how many MLflow runs each run key has, and all their metric values."""
    with closing(sqlite3.connect(database)) as connection:
        keys = connection.execute(
            "SELECT t.value FROM runs r JOIN tags t USING (run_uuid) "
            "WHERE r.lifecycle_stage = 'active' AND t.key = 'run_key'"
        ).fetchall()
        points = connection.execute(
            "SELECT t.value, m.key, m.step, m.timestamp, m.value FROM metrics m "
            "JOIN tags t USING (run_uuid) WHERE t.key = 'run_key'"
        ).fetchall()
    return Counter(key for (key,) in keys), set(points)


def rewrite(store: Store, **changes: Any) -> None:
    """Rewrite every manifest as another version would write it."""
    for path in (store.folder / "stages").rglob("*.json"):
        path.write_bytes(reseal(path.read_bytes(), changes))


@pytest.mark.parametrize("added", [{}, {"cluster": ["a field of a later version"]}])
@pytest.mark.parametrize("stored", HOMES, ids=lambda home: home.name)
def test_runs_stored_by_another_version_are_not_trained_again(
    stored: Path, added: Mapping[str, Any], tmp_path: Path
) -> None:
    home = copied(stored, tmp_path / "home")
    study, store = load_study(str(home / "old.yaml")), Store(str(home / "store"))
    if added:
        rewrite(store, **added)
    plan = plan_study(study, store)
    assert (len(plan.finished), plan.pending) == (len(study.runs()), ())
    results = read_results(study.runs(), store)
    assert {result.outcome for result in results} == {"complete"}
    assert store.verify() == ()
    assert store.quarantined() == ()


def test_a_run_resumed_from_a_state_of_an_earlier_version_matches_a_fresh_run(
    home: Path, tmp_path: Path
) -> None:
    longer = load_study(str(home / "old.yaml"), ["base.epochs=4"])
    run = next(run for run in longer.runs() if run.seed == KEPT and "uniform" in run.arm)

    def records(store: Path) -> list[Mapping[str, float]]:
        assignment = Assignment(config=run.config, store=str(store))
        storing = Storing(assignment, "cpu")
        process = storing.resume(lambda: problem_of(run.config).start(run.config, None, "cpu"))
        begun.append(len(process.records))
        for _ in process:
            storing.add(process, 1.0)
        return [record.metrics for record in process.records]

    begun: list[int] = []
    resumed, trained = records(home / "store"), records(tmp_path / "fresh")
    assert begun == [3, 0]
    assert len(resumed) == 4
    for ours, theirs in zip(trained, resumed, strict=True):
        assert theirs == pytest.approx({name: ours[name] for name in theirs}, rel=1e-4)


def test_a_lease_of_an_earlier_version_is_acquired_with_the_next_token(home: Path) -> None:
    store = Store(str(home / "store"))
    former = Lease.latest(store, "old")
    assert former.host == "node-a"
    assert Lease.current(store, "old") is None
    with Lease.acquire(store, "old", "test"):
        holder = Lease.current(store, "old")
        assert holder.token == former.token + 1


def test_launch_records_and_predictions_of_an_earlier_version_are_read(tmp_path: Path) -> None:
    home = copied(NEWEST, tmp_path / "home")
    study, store = load_study(str(home / "old.yaml")), Store(str(home / "store"))
    (launch,) = launches(store, "old")
    assert (launch.settings, launch.seeds) == (study.settings, study.seeds)
    assert launch.num_finished(store.keys()) == len(study.runs()) == len(launch.ends)
    for result in read_results(study.runs(), store):
        (predictions,) = read_predictions([result], store)
        test = predictions.splits["test"]
        wrong = np.count_nonzero(test.logits[""].argmax(axis=1) != test.labels)
        assert wrong / len(test.labels) == result.records[-1].metrics["test/error"]


def test_a_search_of_an_earlier_version_is_read_as_finished(tmp_path: Path) -> None:
    home = copied(NEWEST, tmp_path / "home")
    study, store = load_study(str(home / "search.yaml")), Store(str(home / "store"))
    history = read_history(study, f"sqlite:///{home / 'optuna.db'}")
    assert [point.state for point in history.points] == ["complete"] * 2
    plan = plan_study(grown_study(study, history, store), store)
    assert plan.pending == ()
    assert {run.key for run in plan.finished} == rows_of(home / "reports" / "search").keys()


@pytest.mark.slow
def test_sync_report_list_and_plan_work_on_a_home_of_an_earlier_version(
    home: Path, command_line: CommandLines
) -> None:
    mixsweep, study = command_line(home), str(home / "old.yaml")
    former, (keys, points) = rows_of(home / "reports" / "old"), tracked(home / "mlflow.db")
    more_seeds = ["plan", study, "--set", "seeds=3", "--json"]
    ran = mixsweep.each([["sync", study], ["report", study], ["status", "--json"], more_seeds])
    assert [each.returncode for each in ran] == [0] * 4, ran
    listings, more = (json.loads(each.stdout) for each in ran[2:])
    now = rows_of(home / "reports" / "old")
    assert now.keys() == former.keys()
    for key, row in former.items():
        assert {name: now[key][name] for name in row} == row
    runs, all_points = tracked(home / "mlflow.db")
    assert runs == keys
    assert {runs[key] for key in former} == {1}
    assert points <= all_points
    (listed,) = (row for row in listings["studies"] if row["study"] == "old")
    assert listed["report"] is not None
    assert more["stored"] == len(former)
    assert more["to_run"] == more["runs"] - len(former) > 0
