"""Records in a store: whatever a field contains, no command fails or stops another study."""

import fcntl
import itertools
import json
import random
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from mixsweep.cli.main import _REFUSALS
from mixup_core.keys import stage_keys
from mixup_core.store import json_records
from mixup_core.store.checkpoints import Store
from mixup_core.store.manifests import Failure, seal
from sweeps.leasing.holders import Heartbeat, Holder, RunningRun, StudyBusyError
from sweeps.reading.study_file import load_study
from sweeps.state.statements import state
from tests.filled import put_epochs
from tests.mixsweep.cli.conftest import type_in
from tests.mixsweep.cli.trained import train
from tests.reports.small_report import write_report

STUDY = """
study: attacked
base: {data: {name: digits}, model: {name: mlp, hidden: [5]}, epochs: 2, batch_size: 64}
arms: {erm: {mix.law: erm}, uniform: {mix.law: {beta: 1.0}}}
seeds: 2
claims:
  - {says: u is lower, source: nobody, that: {less: [uniform, erm], metric: test/error}}
"""
OTHER = STUDY.partition("claims:")[0].replace("attacked", "other").replace("[5]", "[4]")
WRONG: tuple[Any, ...] = (
    None, True, -1, 0, 1.5, 10**30, -(10**30), 10**400, float("inf"), float("nan"), "", "x",
    "\x1b[2J\n=1+1", "plugins: [", "../../x", [], [None], {}, {"x": "y"}, [[[[]]]],
)  # fmt: skip
MISSING = object()
QUICK = (
    ("status", "attacked"), ("plan", "attacked"), ("status", "attacked", "erm"), ("status",),
    ("status", "--json"), ("store", "list"), ("store", "verify"), ("share", "attacked"),
    ("report", "attacked", "--cite"), ("status", "attacked", "--json"),
    ("report", "--out", "site"), ("report", "attacked", "--arms", "erm", "uniform"),
    ("report", "attacked", "--epochs", "rows.csv"), ("stop", "attacked"),
    ("store", "prune", "attacked", "--yes"),
)  # fmt: skip
SLOW = (("report", "attacked"), ("run", "attacked", "--engine", "inline"))
OF_OTHERS = (
    ("status", "other"), ("plan", "other"), ("status", "other", "erm"),
    ("store", "prune", "other", "--yes"),
)  # fmt: skip
OF_A_DRIVER = {"driver", "progress", "uses", "stop"}
"""Records that count while their driver is alive."""
Path_ = tuple[str | int, ...]


Cell = tuple[str, Path, Path_, Any]
"""A wrong value of one field of a record: kind and file of the record, path and value."""


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Home with two studies; of one it has every kind of record."""
    folder = tmp_path_factory.mktemp("prepared")
    home = folder / "runs"
    for name, text in (("attacked", STUDY), ("other", OTHER)):
        (folder / f"{name}.yaml").write_text(text)
        train(home, str(folder / f"{name}.yaml"), but=("uniform", 1))
    store = Store(str(home / "store"))
    study = load_study(str(folder / "attacked.yaml"))
    state(study, store)
    (run,) = (run for run in study.runs() if (run.arm, run.seed) == ("uniform", 1))
    put_epochs(store, run, 1, b"state")
    store.failures.write(
        Failure(run_key=run.key, kind="failed", message="m", epoch=1, attempts=1, trace="t\nu")
    )
    progress = Heartbeat.now(1, [RunningRun(arm="uniform", seed=1, epoch=1)], 3.0)
    for name, content in {
        "leases/attacked.json": asdict(Holder.here(1, "mixsweep run")),
        "leases/attacked.progress.json": asdict(progress),
        "uses/attacked.json": {"token": 1, "stages": ["0" * 16]},
        "stops/attacked.json": {"token": 1, "how": "now"},
    }.items():
        (home / "store" / name).parent.mkdir(exist_ok=True)
        (home / "store" / name).write_text(json.dumps(content))
    (home / "store" / "leases" / "attacked.lock").write_text(f"token {1:015d}\n")
    write_report(home / "reports" / "attacked", study="attacked")
    return folder


def records(prepared: Path) -> dict[str, Path]:
    """Return one file of each kind of record, below the home, by kind."""
    study = load_study(str(prepared / "attacked.yaml"))
    key = stage_keys(study.runs()[0].config)[-1]
    (failure,) = (prepared / "runs" / "store" / "failures").glob("*.json")
    found = {
        "stage": f"store/stages/{key[:2]}/{key}.json",
        "failure": f"store/failures/{failure.name}",
        "statements": "store/studies/attacked/statements.json",
        "driver": "store/leases/attacked.json",
        "progress": "store/leases/attacked.progress.json",
        "uses": "store/uses/attacked.json",
        "stop": "store/stops/attacked.json",
        "provenance": "reports/attacked/provenance.json",
        "launch": f"store/studies/attacked/{study.settings}.json",
    }
    return {kind: Path(name) for kind, name in found.items()}


def places(content: Any, above: Path_ = ()) -> Iterator[Path_]:
    """Yield the path of each value in parsed JSON; one item of a list, and one arm, is entered."""
    if above:
        yield above
    items: Any = (
        itertools.islice(content.items(), 1 if above[-1:] == ("arms",) else None)
        if isinstance(content, dict)
        else enumerate(content[:1])
        if isinstance(content, list)
        else ()
    )
    for name, part in items:
        if name != "sha256":
            yield from places(part, (*above, name))


def changed(content: Any, place: Path_, value: Any) -> Any:
    """Return a copy of parsed JSON with another value at a path."""
    copy = json.loads(json.dumps(content))
    part = copy
    for name in place[:-1]:
        part = part[name]
    if value is MISSING:
        del part[place[-1]]
    else:
        part[place[-1]] = value
    return copy


def written(kind: str, content: Mapping[str, Any]) -> bytes:
    """Return the bytes of a record; the checksum of a sealed one is right."""
    if kind not in {"stage", "failure"}:
        return json.dumps(content).encode()
    rest = {name: value for name, value in content.items() if name != "sha256"}
    try:
        return seal(rest)
    except ValueError:  # NaN: a checksum as another program may compute it
        return json.dumps(content).encode()


def cells(prepared: Path, number: int | None) -> Iterator[Cell]:
    """Yield each wrong value of each field of each record; or `number` of them for each record."""
    draw = random.Random(20261128)
    for kind, file in records(prepared).items():
        content = json.loads((prepared / "runs" / file).read_text())
        found = [(place, value) for place in places(content) for value in (*WRONG, MISSING)]
        for place, value in found if number is None else draw.sample(found, number):
            yield kind, file, place, value


@contextmanager
def locked(home: Path) -> Iterator[None]:
    """Hold the lock of the attacked study, as its driver would."""
    with (home / "store" / "leases" / "attacked.lock").open("r+b") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def faults(
    prepared: Path, home: Path, commands: Sequence[Sequence[str]], number: int | None = None
) -> list[str]:
    """Return a text for each command that fails or shows a control character in one cell."""
    shutil.copytree(prepared / "runs", home, dirs_exist_ok=True)
    expected = {words: type_in(*words).stdout for words in OF_OTHERS}
    found = []
    for cell in cells(prepared, number):
        kind, file, place, value = cell
        shutil.rmtree(home, ignore_errors=True)
        shutil.copytree(prepared / "runs", home)
        content = json.loads((home / file).read_text())
        (home / file).write_bytes(written(kind, changed(content, place, value)))
        for words in (*commands, *OF_OTHERS):
            with locked(home) if kind in OF_A_DRIVER else nullcontext():
                said = type_in(*words)
            is_refused = isinstance(said.exception, (*_REFUSALS, StudyBusyError, SystemExit))
            if said.exception is not None and (not is_refused or words in OF_OTHERS):
                found.append(f"{cell}: {words}: {said.exception!r}")
            if "\x1b" in said.stdout + said.stderr + str(said.exception):
                found.append(f"{cell}: {words}: control characters")
            is_same = words[0] == "store" or said.stdout == expected.get(words)
            if words in OF_OTHERS and not is_same:  # `store` counts what is in quarantine
                found.append(f"{cell}: {words}: another answer")
    return found


@pytest.fixture(autouse=True)
def in_a_new_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    json_records.name_once.cache_clear()
    monkeypatch.chdir(tmp_path)


def test_a_wrong_field_stops_no_command_of_another_study(prepared: Path, tmp_path: Path) -> None:
    assert faults(prepared, tmp_path / "runs", QUICK, number=2) == []


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_every_field_of_every_record_with_every_wrong_value(prepared: Path, tmp_path: Path) -> None:
    assert faults(prepared, tmp_path / "runs", QUICK) == []
    assert faults(prepared, tmp_path / "runs", SLOW, number=20) == []


def test_a_bad_progress_file_is_named_and_ignored_while_its_driver_is_alive(
    prepared: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    home = tmp_path / "runs"
    shutil.copytree(prepared / "runs", home)
    file = home / "store" / "leases" / "attacked.progress.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"updated_at_ms": 10**20}))
    with locked(home):
        said = type_in("status", "attacked")
    assert said.exception is None
    assert f"{file}: updated_at_ms: must be a Unix time in ms" in caplog.text
