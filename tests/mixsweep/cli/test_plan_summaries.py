from collections import Counter
from pathlib import Path

import pytest

from mixsweep.cli.plan_summary import plan_summary, spell_plan
from mixsweep.cli.status import status_summary
from mixup_core.store.checkpoints import Store
from mixup_core.store.files import Folder
from sweeps.reading.study_file import load_study
from sweeps.study.search import SearchHistory
from tests.bench.stored import fill


def test_plan_and_status_read_each_stored_run_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, study = Store(str(tmp_path)), load_study("digits", ["seeds=2"])
    fill(store, study)
    opened: Counter[str] = Counter()
    read = Folder.read

    def counted(folder: Folder, name: str) -> bytes:
        opened[name] += name.startswith("stages/")
        return read(folder, name)

    monkeypatch.setattr(Folder, "read", counted)
    assert plan_summary(study, SearchHistory(), store, slots=1)["to_run"] == 0
    assert set(opened.values()) == {1}
    opened.clear()
    assert status_summary(study, store)["seconds_left"] == 0
    assert set(opened.values()) == {1}


def test_a_plan_shows_no_size_of_0_mb(tmp_path: Path) -> None:
    summary = plan_summary(load_study("digits"), SearchHistory(), Store(str(tmp_path)), slots=1)
    assert "records, 0.1 MB of predictions" in spell_plan(summary)
    few = spell_plan(summary | {"prediction_bytes": 20_000})
    assert "records, less than 0.1 MB of predictions" in few
