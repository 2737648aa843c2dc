"""plan: what it prints of a study and of a machine; that commands which read write nothing."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from click.testing import Result

from mixsweep.cli.plan import findings
from mixsweep.cli.status import spell_status, status_summary
from mixsweep.request import DONE
from mixup_core.store.checkpoints import Store
from sweeps.leasing.lease import Lease
from sweeps.machine.home import Home
from tests.filled import fail
from tests.mixsweep.cli.conftest import type_in
from tests.mixsweep.cli.trained import train
from tests.sweeps.small_searches import asked, read


def told(said: Result) -> dict[str, Any]:
    assert (said.return_value, said.stderr) == (DONE, "")
    summary: dict[str, Any] = json.loads(said.stdout)
    return summary


@pytest.mark.parametrize(
    "arguments", [["plan", "digits"], ["status", "digits"], ["plan"], ["schema"]]
)
def test_read_only_commands_create_no_file_and_exit_0(tmp_path: Path, arguments: list[str]) -> None:
    said = type_in(*arguments)
    absent = f"{tmp_path}/runs/store: this store does not exist\n"
    assert (said.return_value, said.stderr) == (DONE, absent * (arguments[0] == "status"))
    assert said.stdout
    assert list(tmp_path.iterdir()) == []


def test_plan_and_status_change_no_file(tmp_path: Path) -> None:
    def files() -> dict[Path, tuple[int, bytes]]:
        found = [path for path in tmp_path.rglob("*") if path.is_file()]
        return {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in found}

    train(tmp_path / "runs", but=("erm", 1))
    before = files()
    for verb in ("plan", "status"):
        assert type_in(verb, "digits").return_value == DONE
        assert type_in(verb, "digits", "--set", "base.epochs=5", "--json").return_value == DONE
    assert files() == before


def test_planned_hours_and_cost_do_not_depend_on_the_number_of_slots(tmp_path: Path) -> None:
    def plan(*options: str) -> dict[str, Any]:
        return told(type_in("plan", "digits", "--price", "3", "--json", *options))

    assert (plan()["gpu_hours"], plan()["cost"]) == (None, None)
    train(tmp_path / "runs", but=("erm", 1))
    hours = 3 * 2 / 3600  # 3 epochs, whose median took 2 s
    for slots in ("1", "7"):
        summary = plan("--gpus-per-run", "0.5", "--slots", slots)
        assert summary["gpu_hours"] == pytest.approx(hours / 2)
        assert summary["cost"] == pytest.approx(hours / 2 * 3)
    assert plan()["gpu_hours"] is None
    assert plan()["cost"] == pytest.approx(hours * 3)
    assert "cost      0.01" in type_in("plan", "digits", "--price", "3").stdout


def test_plan_and_status_of_a_search_count_the_points_of_its_history(tmp_path: Path) -> None:
    study, home = read(tmp_path), Home(folder=tmp_path / "runs")
    home.folder.mkdir()
    asked(study, home.optuna_url, 4, reopened=False)
    file = str(tmp_path / "s.yaml")
    search = told(type_in("plan", file, "--json"))["search"]
    assert (search["points"], search["points_known"]) == (6, 4)
    points = told(type_in("status", file, "--json"))["points"]
    assert (points["expected"], points["asked"], points["finished"]) == (6, 4, 0)
    assert (
        "points    6 (adaptive: later points depend on results), 4 known"
        in type_in("plan", file).stdout
    )
    assert "points    4 of 6 proposed, 0 trained" in type_in("status", file).stdout


def test_status_shows_the_arms_the_failures_and_the_driver(tmp_path: Path) -> None:
    study = train(tmp_path / "runs", but=("erm", 1))
    store = Store(str(tmp_path / "runs" / "store"))
    (lost,) = (run for run in study.runs() if (run.arm, run.seed) == ("erm", 1))
    fail(store, lost, "diverged", "nan", 2)
    with Lease.acquire(store, "digits", "mixsweep run digits") as lease:
        said = told(type_in("status", "digits", "--json"))
        assert said == status_summary(study, store)
        assert said["driver"]["pid"] == lease.holder.pid
        lines = type_in("status", "digits").stdout
    assert said["arms"]["erm"] == {"expected": 2, "finished": 1, "running": 0, "failed": 1}
    assert said["failures"] == [{"arm": "erm", "seed": 1, "message": "nan"}]
    assert lines == f"{spell_status(said)}\n"
    assert "failed    erm seed 1: nan" in lines
    rest = type_in("status", "digits").stdout
    assert rest.startswith("digits: not running; some runs failed\n")
    assert rest.splitlines()[1].split() == ["arm", "done", "running", "waiting", "failed"]
    assert rest.splitlines()[2].split() == ["erm", "1/2", "0", "0", "1"]


@pytest.mark.parametrize(
    ("is_fast", "bfloat16", "free", "room"),
    [
        (True, "fast on this GPU", 2_000_000_001, "2.0 GB free"),
        (False, "not on this GPU", 2_000_000_000, "2.0 GB free: low"),
    ],
)
def test_the_doctor_names_every_gpu_and_a_disk_of_at_most_two_gigabytes(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    is_fast: bool,
    bfloat16: str,
    free: int,
    room: str,
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "get_device_name", "GPU {}".format)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda: is_fast)
    usage = shutil.disk_usage(tmp_path)._replace(free=free)
    monkeypatch.setattr(shutil, "disk_usage", lambda place: usage)
    found = {" ".join(line.split()) for line in findings(Home(folder=tmp_path))}
    assert {"GPUs GPU 0, GPU 1", f"bfloat16 {bfloat16}", f"home {tmp_path}, {room}"} <= found
