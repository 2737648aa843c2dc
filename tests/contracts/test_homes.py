"""Stores written by earlier commits, one folder per commit, are those of the present code; and
what a later version adds or changes is kept, or refused in one line."""

import hashlib
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from mixup_core.problem import problem_of
from mixup_core.store.checkpoints import FormatError, Store
from sweeps.reading.study_file import load_study
from sweeps.results import read_results
from sweeps.running.storing import Assignment, Storing
from sweeps.stages import plan_study

HOMES = sorted(path.parent for path in Path(__file__).with_name("homes").glob("*/old.yaml"))
KEPT = 0
"""The seed whose last states were kept."""


@pytest.fixture(params=HOMES, ids=lambda home: home.name)
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Return a home of an earlier commit."""
    return shutil.copytree(request.param, tmp_path / "home")


def rewrite(store: Store, **changes: Any) -> None:
    """Let every manifest be one that another version wrote."""
    assert store.folder is not None
    for path in (store.folder / "stages").rglob("*.json"):
        content: Mapping[str, Any] = json.loads(path.read_bytes()) | changes
        content = {name: value for name, value in content.items() if name != "sha256"}
        text = json.dumps(content, sort_keys=True, separators=(",", ":")).encode()
        path.write_bytes(b'{"sha256":"%s",' % hashlib.sha256(text).hexdigest().encode() + text[1:])


@pytest.mark.parametrize("added", [{}, {"cluster": ["a field of a later version"]}])
def test_what_another_version_stored_is_not_trained_again(
    home: Path, added: Mapping[str, Any]
) -> None:
    study, store = load_study(str(home / "old.yaml")), Store(str(home / "store"))
    if added:
        rewrite(store, **added)
    plan = plan_study(study, store)
    assert (len(plan.finished), plan.pending) == (len(study.runs()), ())
    results = read_results(study.runs(), store)
    assert {result.outcome for result in results} == {"complete"}
    assert store.verify() == ()
    assert store.quarantined() == ()


def test_a_run_goes_on_from_a_state_of_an_earlier_version_as_if_it_had_trained_it_itself(
    home: Path, tmp_path: Path
) -> None:
    longer = load_study(str(home / "old.yaml"), ["base.epochs=4"])
    run = next(run for run in longer.runs() if run.seed == KEPT and "uniform" in run.arm)

    def records(store: Path) -> list[Mapping[str, float]]:
        assignment = Assignment(
            config=run.config, keep=frozenset(), keep_final_state=False, store=str(store),
            teacher=None, data_root=None, on_gpu=False,
        )  # fmt: skip
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


def test_a_later_format_is_refused_in_one_line(home: Path) -> None:
    study, store = load_study(str(home / "old.yaml")), Store(str(home / "store"))
    rewrite(store, format=9)
    with pytest.raises(FormatError, match="store format 9, this program knows") as raised:
        plan_study(study, store)
    assert "\n" not in str(raised.value)
    assert store.quarantined() == ()
