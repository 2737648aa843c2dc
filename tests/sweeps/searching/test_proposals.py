import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import optuna
import pytest
from searching import STUDY, expected_error, read

import sweeps.searching.proposals
from sweeps.commands.request import Request
from sweeps.home import Home
from sweeps.search import SearchError, SearchHistory
from sweeps.searching.proposals import Proposals, read_history, read_importances
from sweeps.study import Study
from tests.damages import DAMAGES

CONDITIONAL = STUDY.replace(
    "    mix.law: {beta: {log_uniform: [0.1, 32.0]}}\n",
    "    mix.law: {categorical: [midpoint, {beta: {log_uniform: [0.1, 32.0]}}]}\n"
    "    optimizer.momentum: {uniform: [0.0, 0.9], when: {optimizer.name: sgd}}\n"
    "    optimizer.name: {categorical: [adam, sgd]}\n",
)


def asked(study: Study, url: str, count: int, *, reopened: bool) -> Proposals:
    """Ask and tell; every fifth point fails, every seventh is pruned, the last stays open."""
    proposals = Proposals(study, url)
    for number in range(count):
        if reopened:
            proposals = Proposals(study, url)
        point = proposals.ask()
        assert point is not None
        if reopened:
            proposals = Proposals(study, url)
        error = expected_error(study.search.config_of(point.values))  # type: ignore[union-attr]
        if number % 5 == 4:
            proposals.tell(replace(point, state="failed"))
        elif number % 7 == 6:
            proposals.tell(replace(point, state="pruned", num_seeds=2))
        elif number < count - 1:
            proposals.tell(replace(point, state="complete", objectives=(error,)))
    return proposals


@pytest.mark.parametrize("sampler", ["tpe", "random", "gp", "cmaes"])
@pytest.mark.parametrize("text", [STUDY, CONDITIONAL], ids=["plain", "conditional"])
def test_proposals_do_not_depend_on_how_often_the_storage_was_opened(
    tmp_path: Path, sampler: str, text: str
) -> None:
    study = read(tmp_path, text, f"search.sampler={sampler}")
    once = asked(study, f"sqlite:///{tmp_path / 'a.db'}", 13, reopened=False)
    often = asked(study, f"sqlite:///{tmp_path / 'b.db'}", 13, reopened=True)
    journal = asked(study, str(tmp_path / "c.log"), 13, reopened=True)
    assert once.points() == often.points() == journal.points()
    values = [tuple(point.values.items()) for point in once.points()]
    assert len(set(values)) == 13
    assert once.points()[-1].state == "open", "left by a driver that died: to be adopted"


def test_another_seed_of_the_sampler_proposes_something_else(tmp_path: Path) -> None:
    found = [
        asked(read(tmp_path, STUDY, f"search.seed={seed}"), str(tmp_path / "j.log"), 3,
              reopened=False).points()
        for seed in (0, 1)
    ]  # fmt: skip
    assert found[0] != found[1]


def test_conditional_parameters_exist_only_under_their_parents(tmp_path: Path) -> None:
    study = read(tmp_path, CONDITIONAL)
    points = asked(study, str(tmp_path / "j.log"), 25, reopened=False).points()
    assert {"midpoint", "beta"} == {point.values["mix.law"] for point in points}
    for point in points:
        assert ("mix.law.alpha" in point.values) == (point.values["mix.law"] == "beta")
        assert ("optimizer.momentum" in point.values) == (point.values["optimizer.name"] == "sgd")


def test_optuna_itself_reads_the_storage(tmp_path: Path) -> None:
    study = read(tmp_path)
    url = f"sqlite:///{tmp_path / 'o.db'}"
    asked(study, url, 4, reopened=False)
    (name,) = optuna.get_all_study_names(url)
    seen = optuna.load_study(study_name=name, storage=url)
    assert [trial.state.name for trial in seen.trials] == ["COMPLETE"] * 3 + ["RUNNING"]
    assert seen.metric_names == ["val/error"]
    assert set(seen.trials[0].params) == {"mix.law.alpha", "mix.switch_epoch"}


def test_another_space_or_other_seeds_are_another_search(tmp_path: Path) -> None:
    url = str(tmp_path / "j.log")
    asked(read(tmp_path), url, 3, reopened=False)
    for override in ("seeds=4", "search.space.mix.switch_epoch={int: [0, 20]}", "base.epochs=21"):
        assert Proposals(read(tmp_path, STUDY, override), url).points() == ()
    for override in ("search.points=9", "search.budget={hours: 1}"):
        assert len(Proposals(read(tmp_path, STUDY, override), url).points()) == 3


def test_importance_is_of_means_and_sums_to_one(tmp_path: Path) -> None:
    study = read(tmp_path)
    url = str(tmp_path / "j.log")
    assert asked(study, url, 20, reopened=False).history() == read_history(study, url)
    assert read_history(study, url).importances == {}
    importances = read_importances(study, url)
    assert set(importances) == {"mix.law.alpha", "mix.switch_epoch"}
    assert sum(importances.values()) == pytest.approx(1)


def test_reading_a_history_creates_nothing(tmp_path: Path) -> None:
    study = read(tmp_path)
    for url in (f"sqlite:///{tmp_path / 'o.db'}", str(tmp_path / "j.log")):
        assert read_history(study, url) == SearchHistory()
    assert {path.name for path in tmp_path.iterdir()} == {"s.yaml"}


def test_a_sampler_without_its_package_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweeps.searching.proposals, "find_spec", lambda name: None)
    study = read(tmp_path, STUDY, "search.sampler=cmaes")
    with pytest.raises(SearchError, match="pip install cmaes"):
        Proposals(study, str(tmp_path / "j.log"))


@pytest.mark.parametrize("sampler", ["tpe", "random", "gp"])
def test_several_objectives_are_searched_by_every_sampler_that_can(
    tmp_path: Path, sampler: str
) -> None:
    text = STUDY.replace("objective: val/error", "objective: [val/error, val/nll]")
    proposals = Proposals(
        read(tmp_path, text, f"search.sampler={sampler}"), str(tmp_path / "j.log")
    )
    for number in range(11):  # GP leaves its first ten to chance
        point = proposals.ask()
        assert point is not None
        proposals.tell(replace(point, state="complete", objectives=(0.1 * number, -0.1 * number)))
    assert len({tuple(point.values.items()) for point in proposals.points()}) == 11


@pytest.mark.parametrize("sampler", ["tpe", "random", "grid"])
def test_a_countable_space_is_proposed_to_its_last_point(tmp_path: Path, sampler: str) -> None:
    text = STUDY.replace("log_uniform: [0.1, 32.0]", "categorical: [1.0, 2.0, 4.0]")
    text = text.replace("[0, 20], step: 2", "[0, 20]")
    text = text.replace("points: 6", "sampler: grid" if sampler == "grid" else "points: 99")
    over = () if sampler == "grid" else (f"search.sampler={sampler}",)
    proposals = Proposals(read(tmp_path, text, *over), str(tmp_path / "j.log"))
    while point := proposals.ask():
        proposals.tell(replace(point, state="complete", objectives=(0.1,)))
    # Switch 0 is ERM, and (1.0, 20) is the arm `uniform`.
    assert len(proposals.points()) == 3 * 20 - 1


def test_a_search_has_ended_with_its_space_only_while_the_space_has_no_more(
    tmp_path: Path,
) -> None:
    text = STUDY.replace("log_uniform: [0.1, 32.0]", "categorical: [1.0, 4.0]")
    text = text.replace("[0, 20], step: 2", "[0, 20], step: 10")
    proposals = Proposals(read(tmp_path, text), str(tmp_path / "j.log"))
    while proposals.ask():
        assert proposals.history().ended is None
    ended = "ended with its space, which has no more than 3 different points"
    assert proposals.history().ended == ended
    fewer_arms = text.replace("  uniform: {mix.law: {beta: 1.0}}\n", "")
    proposals = Proposals(read(tmp_path, fewer_arms), str(tmp_path / "j.log"))
    point = proposals.ask()
    assert point is not None
    assert point.values == {"mix.law.alpha": 1.0, "mix.switch_epoch": 20}
    assert proposals.history().ended is None


@pytest.mark.parametrize(
    ("storage", "reason"),
    [
        ("notes.txt", "no journal of Optuna"),
        ("sqlite:///notes.txt", "file is not a database"),
        ("sqlite://", "a database in memory forgets the search"),
        ("foo://user:secret@host/name", "Can't load plugin"),
        (".", "it is no file"),
    ],
)
def test_a_storage_that_is_none_is_refused_in_one_line_and_left_as_it_was(
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
    "a FIFO": "it is no file",
    "a folder": "it is no file",
    "a socket": "it is no file",
    "a dangling link": "it is a link that leads nowhere",
    "a list": "no journal of Optuna",
    "random": "no journal of Optuna",
    "truncated": "its last line is cut off",
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("damage", JOURNALS)
def test_a_journal_that_is_none_or_damaged_is_named_in_one_line(
    tmp_path: Path, damage: str
) -> None:
    study, journal = read(tmp_path), tmp_path / "journal.log"
    asked(study, str(journal), 2, reopened=False)
    DAMAGES[damage](journal)
    for opened in (Proposals, read_history):
        with pytest.raises(SearchError) as caught:
            opened(study, str(journal))
        said = str(caught.value)
        assert said.startswith(f"storage of the search, {journal}: {JOURNALS[damage]}")
        assert len(said.splitlines()) == 1


@pytest.mark.parametrize(
    "line", ['{"op_code": 0}', '{"op_code": 1}\n[1, 2]', '{"op_code": 4}', '{"op_code": [1]}']
)
def test_lines_that_no_journal_has_are_refused_in_one_line(tmp_path: Path, line: str) -> None:
    study, journal = read(tmp_path), tmp_path / "journal.log"
    asked(study, str(journal), 2, reopened=False)
    for before in (b"", journal.read_bytes()):
        journal.write_bytes(before + f"{line}\n".encode())
        for opened in (Proposals, read_history):
            with pytest.raises(SearchError, match="no journal of Optuna, or damaged") as caught:
                opened(study, str(journal))
            assert len(str(caught.value).splitlines()) == 1


def test_a_journal_whose_last_line_is_being_written_is_waited_for(tmp_path: Path) -> None:
    study, journal = read(tmp_path), tmp_path / "journal.log"
    asked(study, str(journal), 2, reopened=False)
    whole = journal.read_bytes()
    journal.write_bytes(whole[:-20])
    writer = threading.Timer(0.15, journal.write_bytes, args=(whole,))
    writer.start()
    assert len(read_history(study, str(journal)).points) == 2
    writer.join()


def test_reading_a_study_loads_no_optuna() -> None:
    code = (
        "import sys; from sweeps.reading.study_file import load_study; "
        "import reports.build; load_study('search-alpha-switch'); "
        "assert not {'optuna', 'ray'} & set(sys.modules), 'loaded'"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_trial_that_somebody_else_enqueued_is_no_point(tmp_path: Path) -> None:
    study, url = read(tmp_path), f"sqlite:///{tmp_path / 'optuna.db'}"
    proposals = Proposals(study, url)
    first = proposals.ask()
    (opened,) = optuna.get_all_study_names(url)
    optuna.load_study(study_name=opened, storage=url).enqueue_trial({"mix.law.alpha": 1.0})
    second = Proposals(study, url).ask()
    assert first is not None
    assert second is not None
    assert (first.number, second.number) == (0, 2)
    history = read_history(study, url)
    assert [point.number for point in history.points] == [0, 2]
    proposals.tell(replace(second, state="complete", objectives=(0.5,)))
    assert read_history(study, url).points[1].objectives == (0.5,)


def test_a_point_asked_for_while_a_report_is_made_is_not_in_it(tmp_path: Path) -> None:
    study, home = read(tmp_path), Home(folder=tmp_path / "runs")
    home.folder.mkdir()
    asked(study, home.optuna_url, 8, reopened=False)
    request = Request(reference="s.yaml", overrides=(), study=study, home=home)
    points = request.history.points
    asked(study, home.optuna_url, 4, reopened=False)
    assert request.weighed_history.points == points
    assert request.weighed_history.importances
