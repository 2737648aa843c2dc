"""store: messages, deleted files, refusals and exit codes."""

from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from click.testing import Result

from mixsweep.request import DONE, SOME_FAILED, RefusedError
from mixup_core.keys import stage_keys
from mixup_core.store.checkpoints import Store
from sweeps.leasing.holders import StudyBusyError
from sweeps.leasing.lease import Lease
from sweeps.reading.study_file import load_study, study_of
from sweeps.state.ledger import enter, forget_launch, launches, note
from sweeps.state.statements import state, statements_of
from sweeps.study.claims import Claim, StatedComparison
from sweeps.study.study import Study
from tests.filled import put_epochs
from tests.mixsweep.cli.conftest import type_in

MB = bytes(1_000_000)


@pytest.fixture
def study() -> Study:
    return load_study("digits", ["base.epochs=6"])


@pytest.fixture
def file(tmp_path: Path, study: Study) -> str:
    path = tmp_path / "study.yaml"
    path.write_text(study.source)
    return str(path)


def mixsweep(*words: str) -> Result:
    return type_in("store", *words)


def _state_of(store: Store, key: str) -> Path:
    (path,) = Path(store.url).glob(f"states/*/{key}-*.bin")
    return path


def test_listing_verifying_or_pruning_an_empty_store_is_refused(tmp_path: Path) -> None:
    for arguments in (["list"], ["list", "digits"], ["verify"], ["prune", "digits", "--yes"]):
        said = mixsweep(*arguments)
        assert isinstance(said.exception, RefusedError)
        assert str(said.exception) == f"{tmp_path}/runs/store: nothing is stored there"
    assert list(tmp_path.iterdir()) == []


def test_the_store_list_has_a_line_for_each_study_and_one_for_other_files(
    store: Store, study: Study, file: str
) -> None:
    put_epochs(store, study.runs()[0], 6, 2 * MB)
    put_epochs(store, study.runs()[1], 2, None)
    said = mixsweep("list", file, "quickstart", file)
    assert (said.return_value, said.stderr) == (DONE, "")
    _, *rows = (line.split() for line in said.output.splitlines())
    assert rows == [
        ["digits", "1/6", "2", "1", "2.0", "0.0", "0.0"],
        ["quickstart", "0/15", "0", "0", "0.0", "0.0", "0.0"],
        ["(others)", "0", "0", "0.0", "0.0", "0.0"],
    ]
    _, others = (line.split() for line in mixsweep("list").output.splitlines())
    assert others == ["(others)", "2", "1", "2.0", "0.0", "0.0"]
    enter(study, store, "mixsweep run digits --set base.epochs=6")
    _, *rows = (line.split() for line in mixsweep("list").output.splitlines())
    assert rows == [
        ["digits", "1/6", "2", "1", "2.0", "0.0", "0.0"],
        ["(others)", "0", "0", "0.0", "0.0", "0.0"],
    ]


def test_two_settings_of_a_study_are_listed_and_forgotten_as_two_studies(
    store: Store, study: Study, file: str
) -> None:
    short = load_study("digits")
    for one in (study, short):
        enter(one, store, "mixsweep run digits")
        put_epochs(store, one.runs()[0], one.runs()[0].config.epochs, MB)
    said = mixsweep("list", file, "digits")
    names = [f"digits@{one.settings[:8]}" for one in (study, short)]
    assert [line.split()[:2] for line in said.output.splitlines()[1:3]] == [
        [name, "1/6"] for name in names
    ]
    assert said.stderr == ""
    odd = replace(launches(store)[0], settings="0" * 32, source="study: digits")
    note(odd, {}, store)
    refused = mixsweep("prune", file, "digits", "--forget", "--yes")
    assert "digits@00000000 cannot be read, and may share results" in str(refused.exception)
    forget_launch(odd, store)
    assert mixsweep("prune", file, "digits", "--forget", "--yes").return_value == DONE
    assert not store.keys()
    assert not launches(store)
    that = StatedComparison(metric="test/error", less=("uniform", "erm"))
    state(claimed := replace(short, claims=(Claim(says="a", source="b", that=that),)), store)
    (statement,) = statements_of(claimed, store).values()
    assert str(statement) == "after 1 of 4 runs"


@pytest.mark.parametrize("name", ["other", "digits"])
def test_a_forgotten_study_leaves_results_that_other_launches_share(
    store: Store, study: Study, file: str, name: str
) -> None:
    """The second launch had the first arm of the first one, and so its runs; now it has none."""
    document = yaml.safe_load(study.source)
    other = study_of({**document, "study": name, "arms": {"erm": document["arms"]["erm"]}})
    newest = study_of({**yaml.safe_load(other.source), "base": {**document["base"], "epochs": 1}})
    for of in (study, other, newest):
        enter(of, store, f"mixsweep run {of.name}.yaml")
    keys = {run.arm: put_epochs(store, run, 6, MB) for run in study.runs() if run.seed == 0}
    listed = mixsweep("prune", file, "--forget")
    assert listed.stdout == "digits: 2 finished runs, 2 stages\n"
    assert listed.stderr == "nothing was deleted; add --yes to delete\n"
    assert set(store.keys()) == set(keys.values())
    assert mixsweep("prune", file, "--forget", "--yes").return_value == DONE
    assert set(store.keys()) == {keys["erm"]}
    assert [launch.study for launch in launches(store)] == [name, name]
    again = {run.arm: put_epochs(store, run, 6, MB) for run in study.runs() if run.seed == 0}
    assert again == keys, "a run that was forgotten can be stored again"


def test_prune_lists_files_and_deletes_them_only_with_yes_while_no_study_is_running(
    store: Store, study: Study, file: str
) -> None:
    first, *_ = [put_epochs(store, study.runs()[0], epochs, 2 * MB) for epochs in (1, 2, 3)]
    listed = mixsweep("prune", file)
    assert listed.return_value == DONE
    assert listed.stderr == "nothing was deleted; add --yes to delete\n"
    assert listed.stdout.endswith(f"\ndigits  state of 1 epochs, stage {first}\n")
    assert sum(store.keys().values()) == 3
    assert "2.0" in mixsweep("list", file).output
    for running in (study.name, "quickstart"):
        with Lease.acquire(store, running, "a driver"):
            assert mixsweep("prune", file).return_value == DONE, "it only looks"
            busy = mixsweep("prune", file, "quickstart", "--yes")
            assert isinstance(busy.exception, StudyBusyError)
    assert sum(store.keys().values()) == 3
    assert Lease.current(store, study.name) is None
    freed = mixsweep("prune", file, "quickstart", "--yes")
    assert (freed.return_value, freed.stderr) == (DONE, "")
    assert freed.stdout.endswith("\nfreed 2.0 MB\n")
    assert sum(store.keys().values()) == 2
    assert store.keys()[first] is False


def test_verify_names_damaged_files_and_exits_1(store: Store, study: Study) -> None:
    keys = [put_epochs(store, run, 1, b"weights") for run in study.runs()[:3]]
    sound = mixsweep("verify")
    assert (sound.return_value, sound.output) == (DONE, "no file is damaged\n")
    _state_of(store, keys[0]).write_bytes(b"other bytes")
    _state_of(store, keys[1]).unlink()
    damaged = mixsweep("verify")
    assert damaged.return_value == SOME_FAILED
    assert damaged.stdout == "2 files are damaged or missing\n"
    assert [key in damaged.stderr for key in keys] == [True, True, False]
    assert len(damaged.stderr.splitlines()) == 2
    assert "1 damaged files are in quarantine/" in mixsweep("list").output


def test_states_of_a_run_shared_by_two_studies_are_kept_until_no_study_needs_them(
    store: Store, study: Study, tmp_path: Path, file: str
) -> None:
    longer = tmp_path / "longer.yaml"
    longer.write_text(load_study("digits", ["study=longer", "base.epochs=9"]).source)
    keys = [put_epochs(store, study.runs()[0], epochs, MB) for epochs in (4, 5, 6)]
    assert keys == list(stage_keys(study.runs()[0].config)[3:6])
    assert "freed 1.0 MB" in mixsweep("prune", file, str(longer), "--yes").stdout
    assert store.keys() == dict(zip(keys, (False, True, True), strict=True))
    assert "freed 1.0 MB" in mixsweep("prune", file, "--yes").stdout
    assert store.keys() == dict(zip(keys, (False, False, True), strict=True))
