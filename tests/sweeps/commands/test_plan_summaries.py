from collections import Counter
from pathlib import Path

import pytest

from mixup_core.store.checkpoints import Store
from mixup_core.store.folder import Folder
from sweeps.commands.summaries import plan_summary, spell_plan, status_summary
from sweeps.reading.study_file import load_study
from sweeps.study.search import SearchHistory
from tests.bench.stored import fill


def test_a_plan_says_what_its_images_take_in_memory(tmp_path: Path) -> None:
    store = Store(str(tmp_path))
    images = load_study("digits", ["base.data.image_size=16"])
    summary = plan_summary(images, SearchHistory(), store, slots=1)
    assert summary["memory_bytes"] == {"digits": (1437 + 360) * 16 * 16}
    assert spell_plan(summary).endswith("\nmemory    0.5 MB of digits on each machine")
    theory = plan_summary(load_study("support-vectors-two"), SearchHistory(), store, slots=1)
    assert theory["memory_bytes"] == {}
    assert "memory" not in spell_plan(theory)


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
