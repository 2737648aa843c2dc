"""add: an archive brings the runs of the study that it states, marked, and nothing else."""

import hashlib
import json
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from mixsweep.request import DONE, RefusedError
from mixup_core.keys import stage_keys
from mixup_core.records import EpochRecord
from mixup_core.store.checkpoints import Store
from mixup_core.store.manifests import EpochFacts, seal
from sweeps.reading.study_file import load_study
from sweeps.state.ledger import Launch
from sweeps.study.study import Run
from tests.mixsweep.cli.conftest import type_in
from tests.mixsweep.cli.trained import train

INVENTED = 0.0123
HARMLESS = """
study: harmless
base:
  data: {name: digits}
  model: {name: mlp, hidden: [7]}
  epochs: 3
  batch_size: 64
arms: {erm: {mix.law: erm}}
seeds: 2
"""
Files = dict[str, bytes]


def zipped(file: Path, files: Mapping[str, bytes]) -> Path:
    """Write an archive whose checksums are right."""
    sums = "".join(f"{hashlib.sha256(of).hexdigest()}  {name}\n" for name, of in files.items())
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in {"SHA256SUMS": sums.encode(), **files}.items():
            archive.writestr(name, content)
    return file


def stage_file(run: Run, epochs: int = 3, **changes: Any) -> Files:
    """Return a stage of a run in which every epoch has the invented error."""
    key = stage_keys(run.config)[epochs - 1]
    content = {
        "key": key,
        "records": [
            EpochRecord(epoch=e, metrics={"test/error": INVENTED}).to_plain()
            for e in range(epochs)
        ],
        "facts": [asdict(EpochFacts(seconds=1.0, stored_at_ms=1 + e)) for e in range(epochs)],
        "environment": {"tried": f"{run.key} 1", "host": "elsewhere"},
        "state": None,
    }  # fmt: skip
    return {f"store/stages/{key[:2]}/{key}.json": seal(content | changes)}


def launch_file(study: str | Path, at_ms: int | None = None) -> Files:
    """Return the file of a launch of a study, as `share` writes it."""
    launch = asdict(Launch.of(load_study(str(study)), "mixsweep run", at_ms))
    return {"launch.json": json.dumps(launch).encode()}


@pytest.fixture
def harmless(tmp_path: Path) -> Path:
    """Study file of an attacker."""
    source = tmp_path / "harmless.yaml"
    source.write_text(HARMLESS)
    return source


@pytest.fixture
def refused(tmp_path: Path) -> Callable[[Files], str]:
    def message(files: Files) -> str:
        said = type_in("add", str(zipped(tmp_path / "a.zip", files)))
        assert isinstance(said.exception, RefusedError), (files, said.stdout)
        assert not (tmp_path / "runs").exists()
        return str(said.exception)

    return message


def test_first_epochs_of_a_run_are_added_and_count_as_unfinished(
    harmless: Path, tmp_path: Path
) -> None:
    files = launch_file(harmless) | stage_file(load_study(str(harmless)).runs()[0], epochs=2)
    assert type_in("add", str(zipped(tmp_path / "a.zip", files))).return_value == DONE
    assert "2 of 3 epochs are stored" in type_in("status", "harmless", "erm").stdout
    assert "2 runs, 0 stored, 2 to run" in type_in("plan", "harmless").stdout


def test_added_runs_are_known_as_added_everywhere(tmp_path: Path, store: Store) -> None:
    train(tmp_path / "runs", "digits", but=("uniform", 1))
    study = load_study("digits")
    (run,) = (run for run in study.runs() if (run.arm, run.seed) == ("uniform", 1))
    file = zipped(tmp_path / "a.zip", launch_file("digits", at_ms=2**47) | stage_file(run))
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    record = f"studies/digits/{study.settings}.json"
    before = store.files.read(record)
    assert type_in("add", str(file)).return_value == DONE
    assert store.files.read(record) == before, "the launch of the home is kept"
    told = f"1 of 6 runs added from an archive (sha256 {digest[:12]})"
    assert told in type_in("plan", "digits").stdout
    assert told in type_in("status", "digits").stdout
    shown = type_in("status", "digits", "uniform").stdout
    assert f"added     from an archive (sha256 {digest[:12]}), " in shown
    said = type_in("report", "digits")
    report = tmp_path / "runs" / "reports" / "digits"
    assert told in said.stdout
    assert told in (report / "table.md").read_text()
    runs = json.loads((report / "provenance.json").read_text())["runs"]
    (added,) = (each["added"] for each in runs if "added" in each)
    assert added["archive"] == digest
    assert store.read(stage_keys(run.config)[-1]) is not None


def records_of(metrics: dict[str, Any], epochs: Sequence[int] = (0, 1, 2)) -> dict[str, Any]:
    return {"records": [{"epoch": epoch, "metrics": metrics} for epoch in epochs]}


ERROR = {"test/error": 0.1}
DAMAGES: dict[str, dict[str, Any]] = {
    "another number of epochs": records_of(ERROR, (0, 1))
    | {"facts": [{"seconds": 1.0, "stored_at_ms": 1}] * 2},
    "epochs in another order": records_of(ERROR, (0, 2, 1)),
    "a time beyond the calendar": {"facts": [{"seconds": 1.0, "stored_at_ms": 10**30}] * 3},
    "a metric as text": records_of({"test/error": "0.1"}),
    "a time without end": {"facts": [{"seconds": 1e308, "stored_at_ms": 1}] * 3},
    "a negative time": {"facts": [{"seconds": -5.0, "stored_at_ms": 1}] * 3},
    "a share below 0": records_of({"test/error": -0.1}),
    "a share above 1": records_of({"val/error": 1.01}),
    "a number whose square has no end": records_of({"train/loss": 1e308}),
    "a negative one": records_of({"a metric of a plugin": -1e308}),
    "a metric with an odd name": records_of({"=1+1": 0.1, **ERROR}),
    "a metric with a long name": records_of({"a" * 151: 0.1}),
    "a fact with an odd name": {"environment": {"a?b": "x"}},
    "a key of another stage": {"key": "0" * 32},
    "a state": {"state": {"sha256": "../../x", "size": 1}},
}
FOREIGN = (
    "report/evil.html", f"store/failures/{'0' * 32}.json", "../evil", "/evil", "store/../evil",
    "store/states/00/x.bin", "store/identity", "store/leases/harmless.json",
    "store/stages/00/.hidden", "data/x.json", "store/studies/x/y.json", "evil.html",
    "store/stages/", "store/stages/0/00.json", "launch.json/x", "SHA256SUMS/x",
    "store/stages/ab/\x1b[2J.json", "C:\\evil",
)  # fmt: skip
"""Names of files that do not belong in an archive."""


def test_an_archive_with_a_bad_record_is_refused_with_its_name(
    harmless: Path, tmp_path: Path, refused: Callable[[Files], str]
) -> None:
    first, second = load_study(str(harmless)).runs()
    good = launch_file(harmless) | stage_file(first)
    for damage in DAMAGES.values():
        bad = stage_file(second, **damage)
        assert next(iter(bad)).removeprefix("store/") in refused(good | bad), damage
    source, key = Store(str(tmp_path / "a")), stage_keys(first.config)[-1]
    record = EpochRecord(epoch=2, metrics={"test/error": INVENTED})
    source.predictions.write(key, record, b"no arrays")
    name = f"predictions/{key[:2]}/{key}.bin"
    unreadable = {f"store/{name}": source.files.read(name)}
    assert f"store/{name}: is damaged" in refused(good | unreadable)


def test_an_archive_with_numbers_that_training_can_record_is_added(
    harmless: Path, tmp_path: Path
) -> None:
    """Losses before a run diverges, negative ones of a plugin, and fractions off by rounding."""
    largest = 3.4e38
    first, second = load_study(str(harmless)).runs()
    files = launch_file(harmless)
    files |= stage_file(
        first, **records_of({"test/error": 1 + 1e-7, "train/loss": largest, "x/square": largest**2})
    )
    files |= stage_file(
        second, **records_of({"test/error": -1e-9, "train/loss": -largest, "x/square": 0})
    )
    assert type_in("add", str(zipped(tmp_path / "a.zip", files))).return_value == DONE
    assert "2 runs, 2 stored" in type_in("plan", "harmless").stdout


def test_an_archive_with_anything_foreign_is_refused(
    harmless: Path, tmp_path: Path, refused: Callable[[Files], str]
) -> None:
    other = stage_file(load_study("digits").runs()[0])
    good = launch_file(harmless) | stage_file(load_study(str(harmless)).runs()[0])
    of_others: list[Files] = [
        other,
        {name.replace("stages", "predictions").replace("json", "bin"): b"x" for name in other},
        {"store/studies/digits/statements.json": b"{}"},
        launch_file("digits"),
        *({name: b"x"} for name in FOREIGN),
    ]
    for foreign in of_others:
        refused(good | foreign)
        assert not list(tmp_path.rglob("*evil*")), foreign
