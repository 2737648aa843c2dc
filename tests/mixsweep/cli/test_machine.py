"""doctor: one line for each check, whether it passes or not."""

import platform
import shutil
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import psutil
import pytest
import torch

from mixsweep.cli import machine
from mixsweep.cli.machine import findings
from mixup_core.problem import all_data_needs
from sweeps.machine.home import Home

Find = Callable[..., str]


@pytest.fixture
def found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Find:
    """Return a function that gives the output line of a check, on a machine without datasets."""
    monkeypatch.setenv("MIXSWEEP_DATA", str(tmp_path / "data"))

    def line(name: str, home: Path = tmp_path) -> str:
        (text,) = (text for text in findings(Home(folder=home)) if text.startswith(name))
        return text.removeprefix(name).strip()

    return line


def test_findings_of_the_doctor_are_lines_with_one_column_of_names(tmp_path: Path) -> None:
    lines = list(findings(Home(folder=tmp_path)))
    assert all(line[12] == " " and line[13] != " " and line.isprintable() for line in lines)
    names = list(dict.fromkeys(line[:13].strip() for line in lines))
    assert names == [
        "python", "packages", "machine", "GPUs", "bfloat16", "home", "data",
    ]  # fmt: skip


def test_the_doctor_shows_the_versions_of_the_main_packages(
    found: Find, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert found("python").startswith(f"{platform.python_version()} on ")
    packages = found("packages").split(", ")
    assert {f"{name} {version(name)}" for name in ("torch", "ray", "optuna", "mlflow")} < set(
        packages
    )
    monkeypatch.setattr(machine, "_PACKAGES", ("torch", "not-a-package-of-anyone"))
    assert found("packages") == f"torch {version('torch')}, not-a-package-of-anyone missing"


def test_the_doctor_shows_memory_in_gigabytes(found: Find) -> None:
    told = found("machine")
    assert f"{psutil.virtual_memory().total / 1e9:.0f} GB memory (" in told
    assert told.endswith(" GB free)")
    assert int(told.split()[0]) >= 1


def test_a_machine_without_gpus_trains_on_its_cpus(
    found: Find, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert found("GPUs") == "none; runs train on CPUs, one thread each"
    has_amx = torch.cpu.get_capabilities().get("amx_bf16", False)
    told = "fast on this CPU (AMX)" if has_amx else "no gain on this CPU (no AMX)"
    assert found("bfloat16") == told


@pytest.mark.parametrize(
    ("is_fast", "told"), [(True, "fast on this GPU"), (False, "not on this GPU")]
)
def test_the_doctor_names_every_gpu(
    found: Find, monkeypatch: pytest.MonkeyPatch, is_fast: bool, told: str
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "get_device_name", "GPU {}".format)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda: is_fast)
    assert found("GPUs") == "GPU 0, GPU 1"
    assert found("bfloat16") == told


def test_a_missing_home_has_the_free_space_of_its_parent_folder(
    tmp_path: Path, found: Find, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage, asked = shutil.disk_usage(tmp_path), []

    def disk_usage(place: Path) -> object:
        asked.append(place)
        return usage._replace(free=12_340_000_000)

    monkeypatch.setattr(shutil, "disk_usage", disk_usage)
    (tmp_path / "there").mkdir()
    for home in ("there", "there/not/yet"):
        assert found("home", tmp_path / home) == f"{tmp_path / home}, 12.3 GB free"
        assert asked.pop() == tmp_path / "there"
    monkeypatch.chdir(tmp_path)
    assert found("home", Path("there/runs")) == "there/runs, 12.3 GB free"
    assert asked.pop() == tmp_path / "there"
    assert list((tmp_path / "there").iterdir()) == []


@pytest.mark.parametrize(
    ("free", "told"),
    [
        (2_000_000_001, "2.0 GB free"),
        (2_000_000_000, "2.0 GB free: low"),
        (0, "0.0 GB free: low"),
    ],
)
def test_a_disk_with_two_gigabytes_or_less_is_marked_low(
    tmp_path: Path, found: Find, monkeypatch: pytest.MonkeyPatch, free: int, told: str
) -> None:
    usage = shutil.disk_usage(tmp_path)._replace(free=free)
    monkeypatch.setattr(shutil, "disk_usage", lambda place: usage)
    assert found("home") == f"{tmp_path}, {told}"


def test_every_data_set_has_a_line_with_the_command_that_fetches_it(found: Find) -> None:
    sets = [found_set for needs in all_data_needs().values() for found_set in needs.sets()]
    assert {"cifar10", "cifar10-c", "digits"} <= {found_set.name for found_set in sets}
    for found_set in sets:
        told = found(f"data         {found_set.name}:")
        if found_set.name == "digits":
            assert told.startswith("scikit-learn; ")
        else:
            assert told.startswith(f"missing; mixsweep data fetch {found_set.name}")


def test_a_data_set_that_is_part_of_another_shows_no_memory(found: Find) -> None:
    assert found("data         cifar10-c:") == "missing; mixsweep data fetch cifar10-c"


def test_the_doctor_shows_the_memory_of_each_data_set(found: Find) -> None:
    # 60,000 images of 3 x 32 x 32 bytes
    assert found("data         cifar100:").endswith("; 184.3 MB in memory")
