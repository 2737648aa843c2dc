"""Archives: runs that are added to a store stay there."""

from dataclasses import replace
from pathlib import Path

import pytest

from mixup_core.keys import stage_keys
from mixup_core.problem import KnownData
from mixup_core.store.checkpoints import Store
from mixup_core.store.manifests import Stage
from sweeps.running.assignment import Assignment
from sweeps.running.storing import Storing
from sweeps.state.archives import Brought, add_content, unpack, write_archive
from sweeps.state.ledger import Launch
from sweeps.state.results import RunResult
from sweeps.state.stages import OWNER, PlannedRun
from sweeps.study.study import Run
from tests import toy

SHORT = Run(arm="short", config=toy.ToyConfig(epochs=3))
LONG = Run(arm="long", config=toy.ToyConfig(epochs=9))

LAUNCH = Launch(
    study="s", settings="0" * 32, source="s", arms={}, seeds=(0,), command="c", ends=(), at_ms=1
)

pytestmark = pytest.mark.usefixtures("toy_problem")


def _stored_in_passing(store: Store) -> tuple[Storing, toy.Walk, Stage]:
    """Train the long run until it has stored the short run's result to resume from."""
    planned = PlannedRun(run=LONG, start=0, needs=(), keep=frozenset())
    longer = Storing(Assignment.of(planned, store, keep_final_state=False, on_gpu=False), "cpu")
    walk = longer.resume(lambda: toy.start(LONG.config, None, "cpu"))
    for _ in iter(walk):
        longer.add(walk, 30.0)
        if len(walk.records) == 4:
            break
    stage = store.read(stage_keys(SHORT.config)[-1])
    assert OWNER in stage.environment
    return longer, walk, stage


def test_an_added_run_is_kept_when_a_longer_run_of_another_driver_goes_past_it(
    tmp_path: Path,
) -> None:
    store, source = Store(str(tmp_path / "store")), Store(str(tmp_path / "unpacked"))
    longer, walk, stage = _stored_in_passing(store)
    source.write(
        stage.key, records=stage.records, facts=stage.facts, environment=stage.environment,
        state=None,
    )  # fmt: skip
    brought = Brought(
        launch=replace(LAUNCH, archive="0" * 64), facts={}, stages=tuple(source.stages()),
        statements={}, source=source,
    )  # fmt: skip
    added = add_content(brought, store, "me")
    assert (added.new, added.known, added.other) == (0, 1, ())
    for _ in iter(walk):
        longer.add(walk, 30.0)
    assert len(walk.records) == LONG.config.epochs
    assert store.read(stage.key) is not None


def test_a_run_in_an_archive_is_not_marked_for_deletion(tmp_path: Path) -> None:
    store, file = Store(str(tmp_path / "store")), tmp_path / "a.zip"
    *_, stage = _stored_in_passing(store)
    result = RunResult(run=SHORT, stage=stage, failure=None)
    write_archive(file, LAUNCH, KnownData(facts={}), [result], store)
    unpack(file, tmp_path / "unpacked")
    copied = Store(str(tmp_path / "unpacked" / "store")).read(stage.key)
    assert OWNER not in copied.environment
