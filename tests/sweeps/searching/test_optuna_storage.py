from pathlib import Path

import pytest

from sweeps.searching import optuna_storage
from sweeps.searching.proposals import Proposals
from sweeps.searching.search_history import read_history
from sweeps.study.search import SearchError
from tests.damages import DAMAGES
from tests.sweeps.small_searches import asked, read


@pytest.mark.parametrize(
    ("storage", "reason"),
    [
        ("notes.txt", "not an Optuna journal"),
        ("sqlite:///notes.txt", "file is not a database"),
        ("sqlite://", "a database in memory loses the search"),
        ("foo://user:secret@host/name", "NoSuchModuleError"),
        ("foo://host/name", "Can't load plugin"),
        (".", "the path is no file"),
    ],
)
def test_an_invalid_storage_is_refused_in_one_line_and_left_unchanged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, storage: str, reason: str
) -> None:
    monkeypatch.chdir(tmp_path)
    notes = tmp_path / "notes.txt"
    notes.write_text("What I saw on Monday, at some length: nothing to speak of.\n" * 20)
    before = notes.read_text()
    study = read(tmp_path)
    for opened in (Proposals, read_history):
        with pytest.raises(SearchError, match=reason) as caught:
            opened(study, storage)
        assert len(str(caught.value).splitlines()) == 1
        assert "secret" not in str(caught.value)
    assert notes.read_text() == before


JOURNALS = {
    "a FIFO": "the path is no file",
    "a folder": "the path is no file",
    "a socket": "the path is no file",
    "a dangling link": "the path is a link that leads nowhere",
    "a list": "the file is not an Optuna journal",
    "random": "the file is not an Optuna journal",
    "truncated": "the last line of the journal is incomplete",
}


@pytest.mark.parametrize("damage", JOURNALS)
def test_an_invalid_or_damaged_journal_is_reported_in_one_line(tmp_path: Path, damage: str) -> None:
    study, journal = read(tmp_path), tmp_path / "journal.log"
    asked(study, str(journal), 2, reopened=False)
    DAMAGES[damage](journal)
    for opened in (Proposals, read_history):
        with pytest.raises(SearchError) as caught:
            opened(study, str(journal))
        said = str(caught.value)
        assert said.startswith(f"Optuna's storage {journal} cannot be used: {JOURNALS[damage]}")
        assert len(said.splitlines()) == 1


def test_reading_a_journal_waits_for_an_incomplete_last_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study, journal = read(tmp_path), tmp_path / "journal.log"
    asked(study, str(journal), 2, reopened=False)
    whole = journal.read_bytes()
    journal.write_bytes(whole[:-20])

    def write_the_rest(seconds: float) -> None:
        journal.write_bytes(whole)

    monkeypatch.setattr(optuna_storage.time, "sleep", write_the_rest)
    assert len(read_history(study, str(journal)).points) == 2
