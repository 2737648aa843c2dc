import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from mixsweep.launching.preconditions import require_room
from mixsweep.request import Request
from mixup_core.store.errors import StoreFullError
from sweeps.machine.home import Home
from sweeps.reading.study_file import load_study
from sweeps.state.stages import plan_study
from tests.mixsweep.cli.trained import train


def test_a_full_disk_is_reported_before_training_with_a_command_that_frees_space(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "runs"
    train(home)
    free = [10**12]
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda place: usage._replace(free=free[0]))
    study = load_study("digits", ["seeds=9"])
    request = Request(
        reference="digits", overrides=("seeds=9",), study=study, home=Home(folder=home)
    )
    plan = plan_study(study, request.store)
    require_room(request, plan)
    free[0] = 999_999
    with pytest.raises(StoreFullError, match=r"^disk full: .*runs has 1.0 MB free") as caught:
        require_room(request, plan)
    held = sum(dict(request.store.predictions.sizes(request.store.predictions.keys())).values())
    assert f"`mixsweep store prune digits --yes` frees {held / 1e6:.1f} MB" in str(caught.value)
    large = replace(study, seeds=tuple(range(60)))
    free[0] = 1_100_000
    with pytest.raises(
        StoreFullError, match=r"store has 1.1 MB free, and this launch needs \d\.\d MB"
    ):
        require_room(request, plan_study(large, request.store))
