from pathlib import Path

from mixup_core.store.checkpoints import Store
from sweeps.commands.summaries import plan_summary, spell_plan
from sweeps.reading.study_file import load_study
from sweeps.study.search import SearchHistory


def test_a_plan_says_what_its_images_take_in_memory(tmp_path: Path) -> None:
    store = Store(str(tmp_path))
    images = load_study("digits", ["base.data.image_size=16"])
    summary = plan_summary(images, SearchHistory(), store, slots=1)
    assert summary["memory_bytes"] == {"digits": (1437 + 360) * 16 * 16}
    assert spell_plan(summary).endswith("\nmemory    0.5 MB of digits on each machine")
    theory = plan_summary(load_study("support-vectors-two"), SearchHistory(), store, slots=1)
    assert theory["memory_bytes"] == {}
    assert "memory" not in spell_plan(theory)
