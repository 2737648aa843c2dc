"""add: an archive brings the runs of the study that it states, marked, and nothing else."""

import hashlib
import itertools
import json
import shutil
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from mixsweep.request import DONE, RefusedError
from mixup_core.keys import stage_keys
from mixup_core.records import EpochRecord
from mixup_core.store.checkpoints import Store
from mixup_core.store.manifests import EpochFacts, seal
from sweeps.reading.study_file import StudyError, load_study, study_of_launch
from sweeps.state.archives import StudyArchiveError, add_content, content_of, unpack
from sweeps.state.ledger import Launch
from sweeps.study.study import Run
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
def store(tmp_path: Path) -> Store:
    return Store(str(tmp_path / "runs" / "store"))


@pytest.fixture
def refused(tmp_path: Path, type_in: Callable[..., Result]) -> Callable[[Files], str]:
    def message(files: Files) -> str:
        said = type_in("add", str(zipped(tmp_path / "a.zip", files)))
        assert isinstance(said.exception, RefusedError), said.stdout
        assert not (tmp_path / "runs").exists()
        return str(said.exception)

    return message


def test_first_epochs_of_a_run_are_added_and_count_as_unfinished(
    harmless: Path, tmp_path: Path, type_in: Callable[..., Result]
) -> None:
    files = launch_file(harmless) | stage_file(load_study(str(harmless)).runs()[0], epochs=2)
    assert type_in("add", str(zipped(tmp_path / "a.zip", files))).return_value == DONE
    assert "2 of 3 epochs are stored" in type_in("status", "harmless", "erm").stdout
    assert "2 runs, 0 stored, 2 to run" in type_in("plan", "harmless").stdout


def test_added_runs_are_known_as_added_everywhere(
    tmp_path: Path, store: Store, type_in: Callable[..., Result]
) -> None:
    train(tmp_path / "runs", "digits", but=("uniform", 1))
    study = load_study("digits")
    (run,) = (run for run in study.runs() if (run.arm, run.seed) == ("uniform", 1))
    file = zipped(tmp_path / "a.zip", launch_file("digits") | stage_file(run))
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    assert type_in("add", str(file)).return_value == DONE
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


DAMAGES: dict[str, dict[str, Any]] = {
    "another number of epochs": {
        "records": [{"epoch": e, "metrics": {"test/error": 0.1}} for e in range(2)],
        "facts": [{"seconds": 1.0, "stored_at_ms": 1}] * 2,
    },
    "epochs in another order": {
        "records": [{"epoch": e, "metrics": {"test/error": 0.1}} for e in (0, 2, 1)]
    },
    "a time beyond the calendar": {"facts": [{"seconds": 1.0, "stored_at_ms": 10**30}] * 3},
    "a time as text": {"facts": [{"seconds": "1", "stored_at_ms": 1}] * 3},
    "a metric as text": {
        "records": [{"epoch": e, "metrics": {"test/error": "0.1"}} for e in range(3)]
    },
    "a metric with an odd name": {
        "records": [{"epoch": e, "metrics": {"=1+1": 0.1, "test/error": 0.1}} for e in range(3)]
    },
    "a metric with a long name": {
        "records": [{"epoch": e, "metrics": {"a" * 251: 0.1}} for e in range(3)]
    },
    "no environment": {"environment": None},
    "a key of another stage": {"key": "0" * 32},
    "a state": {"state": {"sha256": "../../x", "size": 1}},
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_an_archive_with_a_bad_record_is_refused_with_its_name(
    damage: str, harmless: Path, refused: Callable[[Files], str]
) -> None:
    first, second = load_study(str(harmless)).runs()
    bad = stage_file(second, **DAMAGES[damage])
    files = launch_file(harmless) | stage_file(first) | bad
    assert next(iter(bad)).removeprefix("store/") in refused(files)


def test_an_archive_replaces_neither_launches_nor_facts_nor_statements_of_the_home(
    tmp_path: Path, store: Store, type_in: Callable[..., Result]
) -> None:
    study = train(tmp_path / "runs", "digits")
    name = f"studies/digits/{study.settings}.json"
    before = store.files.read(name)
    archive = zipped(tmp_path / "a.zip", launch_file("digits", at_ms=2**47))
    assert type_in("add", str(archive)).return_value == DONE
    assert store.files.read(name) == before


def test_an_archive_with_predictions_that_cannot_be_read_is_refused(
    harmless: Path, tmp_path: Path, refused: Callable[[Files], str]
) -> None:
    run, _ = load_study(str(harmless)).runs()
    source = Store(str(tmp_path / "a" / "store"))
    record = EpochRecord(epoch=2, metrics={"test/error": INVENTED})
    source.predictions.write(key := stage_keys(run.config)[-1], record, b"no arrays")
    name = f"predictions/{key[:2]}/{key}.bin"
    files = launch_file(harmless) | stage_file(run) | {f"store/{name}": source.files.read(name)}
    assert f"store/{name}: is damaged" in refused(files)


def _of_others() -> dict[str, Files]:
    other = load_study("digits").runs()[0]
    key = stage_keys(other.config)[-1]
    return {
        "": {},
        "a stage": stage_file(other),
        "predictions": {f"store/predictions/{key[:2]}/{key}.bin": b"x"},
        "statements": {"store/studies/digits/statements.json": b"{}"},
        "a study": launch_file("digits"),
    }


ODD = {
    "", "report/evil.html", f"store/failures/{'0' * 32}.json",
    "../evil", "/evil", "store/../evil", "store/states/00/x.bin", "store/identity",
    "store/leases/harmless.json", "store/stages/00/.hidden", "data/x.json",
    "store/studies/x/y.json",
    "evil.html", "store/stages/", "store/stages/0/00.json", "launch.json/x", "SHA256SUMS/x",
    "store/stages/ab/\x1b[2J.json", "C:\\evil",
}  # fmt: skip


def test_of_all_archives_only_those_with_nothing_foreign_are_added(
    harmless: Path, tmp_path: Path
) -> None:
    run = load_study(str(harmless)).runs()[0]
    others, damages = _of_others(), {"": {}, **DAMAGES}
    home, number = tmp_path / "home", 0
    for foreign, damage, odd in itertools.product(others, damages, sorted(ODD)):
        if sum(map(bool, (foreign, damage, odd))) > 2:
            continue
        files = {**launch_file(harmless), **stage_file(run, **damages[damage]), **others[foreign]}
        file = zipped(tmp_path / "a.zip", files | ({odd: b"x"} if odd else {}))
        folder = tmp_path / f"{number}"
        folder.mkdir()
        number += 1
        is_good = not foreign and not damage and not odd
        store = Store(str(home / "store"))
        try:
            archive = unpack(file, folder)
            study = study_of_launch(archive.launch, "a.zip", archive.known)
            add_content(content_of(archive, study), store, "me")
        except (StudyArchiveError, StudyError):
            assert not is_good, (foreign, damage, odd)
        else:
            assert is_good, (foreign, damage, odd)
        assert set(store.keys()) <= {stage_keys(run.config)[-1]}
        assert not store.failures.keys()
        assert not list(tmp_path.rglob("*evil*")), (foreign, damage, odd)
        shutil.rmtree(home, ignore_errors=True)
    assert number > 200
