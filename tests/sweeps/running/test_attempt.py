from functools import partial
from pathlib import Path

import pytest

from mixup_core.numeric_settings import require_instructions
from mixup_core.store.checkpoints import Store
from sweeps.running import attempt as module
from sweeps.running.assignment import Assignment
from sweeps.running.attempt import Driver, attempt
from tests import toy


@pytest.mark.usefixtures("toy_problem")
def test_a_run_fails_with_a_message_if_the_processor_lacks_instructions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text("flags : fpu sse2\n")
    found = partial(require_instructions, cpuinfo=str(cpuinfo))
    monkeypatch.setattr(module, "require_instructions", found)
    monkeypatch.setenv("ATEN_CPU_CAPABILITY", "avx2")
    assignment = Assignment(
        config=toy.ToyConfig(epochs=1), store=Store(str(tmp_path / "store")).url
    )
    failure = attempt(assignment, Driver(lambda _: None), {})["failure"]
    assert failure["kind"] == "failed"
    assert "ATEN_CPU_CAPABILITY is avx2, but this processor lacks" in failure["message"]
