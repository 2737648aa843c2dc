from pathlib import Path

import pytest

from mixup_core.store.checkpoints import Store
from sweeps.commands.doctor import findings
from sweeps.commands.summaries import plan_summary, spell_plan
from sweeps.home import Home
from sweeps.reading.study_file import load_study
from sweeps.search import SearchHistory


def test_a_plan_says_what_its_images_take_in_memory(tmp_path: Path) -> None:
    store = Store(str(tmp_path))
    images = load_study("digits", ["base.data.image_size=16"])
    summary = plan_summary(images, SearchHistory(), store, slots=1)
    assert summary["memory_bytes"] == {"digits": (1437 + 360) * 16 * 16}
    assert spell_plan(summary).endswith("\nmemory    0.5 MB of digits on each machine")
    theory = plan_summary(load_study("support-vectors-two"), SearchHistory(), store, slots=1)
    assert theory["memory_bytes"] == {}
    assert "memory" not in spell_plan(theory)


@pytest.mark.parametrize("is_there", [True, False])
def test_the_doctor_says_whether_there_is_a_c_compiler(
    is_there: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiler = tmp_path / "cc"
    if is_there:
        compiler.touch(mode=0o700)
    monkeypatch.setenv("PATH", str(tmp_path))
    (line,) = (line for line in findings(Home(folder=tmp_path)) if line.startswith("C compiler"))
    assert line.split()[2].rstrip(";") == (str(compiler) if is_there else "none")


def test_the_doctor_says_what_each_data_set_takes_in_memory(tmp_path: Path) -> None:
    lines = list(findings(Home(folder=tmp_path)))
    (line,) = (line for line in lines if line.startswith("data         cifar100:"))
    assert line.endswith("; 184.3 MB in memory")  # 60,000 images of 3 x 32 x 32 bytes
