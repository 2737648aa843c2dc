"""share and add: a study is added to another home completely, or not at all."""

import json
import random
import shutil
import zipfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

import pytest

from mixsweep.request import DONE, SOME_FAILED, RefusedError
from mixup_core.keys import stage_keys
from mixup_core.predictions import Predictions
from mixup_core.records import EpochRecord
from mixup_core.store.checkpoints import Store
from mixup_core.store.manifests import EpochFacts
from sweeps.reading.study_file import load_study
from sweeps.state.archives import StudyArchiveError, unpack
from sweeps.state.ledger import Launch, launches, note
from sweeps.state.statements import Statement, spell_statements, stated_in
from tests.filled import fail
from tests.mixsweep.cli.conftest import type_in
from tests.mixsweep.cli.photos import forget
from tests.mixsweep.cli.trained import train

PREDICTIONS = Predictions(splits={}).to_bytes()
Change = Callable[[dict[str, bytes]], object]


@pytest.fixture
def shared(launched: Path, tmp_path: Path) -> Path:
    """Archive of a finished study of photos, which have since been deleted."""
    store = Store(str(launched / "store"))
    (run, *_) = load_study("signs", (), store.url).runs()
    stage = store.read(stage_keys(run.config)[-1])
    store.predictions.write(stage.key, stage.records[-1], PREDICTIONS)
    assert type_in("report", "signs", "--out", str(tmp_path / "before")).return_value == DONE
    file = tmp_path / "signs.zip"
    said = type_in("share", "signs", "--out", str(file))
    assert (said.return_value, said.stderr) == (DONE, "")
    assert said.stdout.startswith(f"{file}: 6 of 6 runs, ")
    shutil.rmtree(tmp_path / "place")
    shutil.rmtree(tmp_path / "data")
    forget()
    return file


def test_a_shared_study_gives_the_same_report_in_another_home(shared: Path, tmp_path: Path) -> None:
    other = str(tmp_path / "other")
    said = type_in("add", str(shared), "--home", other)
    assert said.return_value == DONE
    assert said.stdout == "signs: 6 runs added, 0 already here with the same records\n"
    report = type_in("report", "signs", "--home", other, "--out", str(tmp_path / "after"))
    assert report.return_value == DONE, report.stderr
    for name in ("table.csv", "runs.csv"):
        before, after = (tmp_path / place / name for place in ("before", "after"))
        assert before.read_bytes() == after.read_bytes()
    own, theirs = (Store(str(tmp_path / home / "store")) for home in ("runs", "other"))
    assert own.predictions.keys() == theirs.predictions.keys()
    assert own.keys().keys() == theirs.keys().keys()
    again = type_in("add", str(shared), "--home", other)
    assert again.stdout == "signs: 0 runs added, 6 already here with the same records\n"


def test_a_shared_study_with_looks_is_finished_where_it_is_added(tmp_path: Path) -> None:
    claims = "claims: [{says: A, source: B, that: {less: [uniform, erm], metric: test/error}}]"
    file = tmp_path / "digits.yaml"
    seeds = "seeds: {at_most: 9, until: decided}"
    file.write_text(load_study("digits", ()).source.replace("seeds: 2", seeds) + claims)
    study = train(tmp_path / "runs", str(file))
    assert study.until is not None
    archive, other = str(tmp_path / "a.zip"), tmp_path / "other"
    for words in (("share", str(file), "--out", archive), ("add", archive, "--home", str(other))):
        assert type_in(*words).return_value == DONE
    store = Store(str(other / "store"))
    (launch,) = launches(store)
    assert launch.num_finished(store.keys()) == len(launch.ends) < len(study.runs())


@pytest.mark.parametrize("has_failed", [False, True])
def test_a_study_without_a_stored_epoch_is_not_shared_nor_run_again_if_it_failed(
    tmp_path: Path, store: Store, has_failed: bool
) -> None:
    study = load_study("digits", ("seeds=1",))
    note(Launch.of(study, "mixsweep run digits"), {}, store)
    for run in study.runs() if has_failed else ():
        fail(store, run, "diverged")
    said = type_in("share", "digits", "--set", "seeds=1")
    assert isinstance(said.exception, RefusedError)
    assert "digits: no run has stored an epoch" in str(said.exception)
    assert ("archives contain no failures, which" in str(said.exception)) == has_failed
    assert ("mixsweep run" in str(said.exception)) != has_failed
    assert not (tmp_path / "runs" / "exports").exists()


def test_existing_runs_with_different_records_are_kept(shared: Path, tmp_path: Path) -> None:
    other = Store(str(tmp_path / "other" / "store"))
    key = next(iter(Store(str(tmp_path / "runs" / "store")).keys()))
    records = [EpochRecord(epoch=e, metrics={"test/error": 0.9}) for e in range(2)]
    facts = [EpochFacts(seconds=1.0, stored_at_ms=1)] * 2
    other.write(key, records=records, facts=facts, environment={}, state=None)
    said = type_in("add", str(shared), "--home", str(tmp_path / "other"))
    assert said.return_value == SOME_FAILED
    assert f"stage {key}: this store has other records, which are kept" in said.stderr
    stage = other.read(key)
    assert stage.records[-1].metrics["test/error"] == 0.9


def _statements(home: Path) -> str:
    found = stated_in("signs", Store(str(home / "store")))
    return spell_statements(found.values())


def test_statements_of_claims_are_shared_and_do_not_replace_those_of_the_home(
    launched: Path, tmp_path: Path
) -> None:
    stated = Statement(at_ms=1, finished=0, runs=4, seeds=(0, 1), looks=2, extended=1)
    texts = {"a" * 32: stated, "b" * 32: replace(stated, finished=2, extended_after="\x1b[2J")}
    content = json.dumps({key: asdict(one) for key, one in texts.items()}).encode()
    Store(str(launched / "store")).files.write("studies/signs/statements.json", content)
    file, other, known = tmp_path / "signs.zip", tmp_path / "other", tmp_path / "known"
    assert type_in("share", "signs", "--out", str(file)).return_value == DONE
    later = json.dumps({"a" * 32: asdict(replace(stated, looks=7))}).encode()
    Store(str(known / "store")).files.write("studies/signs/statements.json", later)
    for home in (other, known):
        assert type_in("add", str(file), "--home", str(home)).return_value == DONE
    assert (
        _statements(other)
        == "before the runs, seeds changed after a look, 2 looks, as an archive says"
    )
    assert _statements(known) == "before the runs, seeds changed after a look, 7 looks"


def _inflate(name: str, files: dict[str, bytes]) -> None:
    files[name] = bytes(300 * 2**20)


CHANGES: dict[str, tuple[Change, str]] = {
    "a file": (lambda f: f.update({"launch.json": b"{}"}), "is damaged (wrong sha256)"),
    "a file too few": (lambda f: f.pop("launch.json"), "but not in both"),
    "a file too many": (lambda f: f.update({"store/stages/aa/bb.json": b"x"}), "but not in both"),
    "no sums": (lambda f: f.pop("SHA256SUMS"), "SHA256SUMS is missing"),
    **{f"a bomb in {name}": (partial(_inflate, name), "unpacks to")
       for name in ("store/bomb", "launch.json", "SHA256SUMS")},
}  # fmt: skip


@pytest.mark.parametrize(
    "change",
    [pytest.param(c, marks=[pytest.mark.long] * c.endswith(("json", "SUMS"))) for c in CHANGES],
)
def test_a_changed_archive_or_a_zip_bomb_is_refused_and_no_file_is_written(
    change: str, shared: Path, tmp_path: Path
) -> None:
    alter, message = CHANGES[change]
    with zipfile.ZipFile(shared) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    alter(files)
    with zipfile.ZipFile(shared, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    said = type_in("add", str(shared), "--home", str(tmp_path / "other"))
    assert isinstance(said.exception, RefusedError)
    assert message in str(said.exception)
    assert not (tmp_path / "other").exists()


def test_a_damaged_archive_is_refused_for_damage_at_any_position(
    shared: Path, tmp_path: Path
) -> None:
    whole, draw, damaged = shared.read_bytes(), random.Random(0), tmp_path / "damaged.zip"
    for number in range(300):
        place = draw.randrange(len(whole))
        changed = bytearray(whole)
        changed[place] ^= draw.randrange(1, 256)
        damaged.write_bytes(changed if number % 3 else whole[:place] + whole[place + 1 :])
        folder = tmp_path / f"unpacked-{number}"
        folder.mkdir()
        with suppress(StudyArchiveError):  # a time or an attribute is nothing that is read
            unpack(damaged, folder)


def test_an_unfinished_study_is_shared_with_its_finished_runs(tmp_path: Path) -> None:
    train(tmp_path / "runs", "digits", but=("erm", 0))
    said = type_in("share", "digits")
    assert said.return_value == SOME_FAILED
    assert "5 of 6 runs" in said.stdout
    file = tmp_path / "runs" / "exports" / "digits.mixsweep.zip"
    added = type_in("add", str(file), "--home", str(tmp_path / "b"))
    assert added.stdout.startswith("digits: 5 runs added")


def test_a_shared_study_file_has_no_secrets_of_addresses(tmp_path: Path) -> None:
    address = "https://me:secret@host/x.zip?sig=secret#secret"
    described = f"description=Images of {address}"
    train(tmp_path / "runs", "digits", described)
    archive, unpacked = tmp_path / "digits.zip", tmp_path / "unpacked"
    said = type_in("share", "digits", "--set", described, "--out", str(archive))
    assert said.return_value == DONE
    unpacked.mkdir()
    assert (
        "description: Images of https://***@host/x.zip\n" in unpack(archive, unpacked).launch.source
    )
    assert "secret" not in (unpacked / "launch.json").read_text()
