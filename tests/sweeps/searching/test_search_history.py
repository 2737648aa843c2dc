"""Search history: points read from Optuna's storage, which several homes may share."""

from dataclasses import replace
from pathlib import Path

import optuna
import pytest

from mixup_core.store.checkpoints import Store
from sweeps.searching.proposals import Proposals
from sweeps.searching.search_history import OWNER, Owner, importances_of, name_of, read_history
from sweeps.study.search import Point
from sweeps.study.study import Study
from tests.sweeps.small_searches import Driver, asked, read


def test_importances_are_computed_from_means_and_sum_to_one(tmp_path: Path) -> None:
    study = read(tmp_path)
    url = str(tmp_path / "j.log")
    history = read_history(study, url)
    assert asked(study, url, 20, reopened=False).history() == read_history(study, url) != history
    points = [p for p in read_history(study, url).points if p.state == "complete"]
    assert importances_of(study.search, points[:1]) == {}
    importances = importances_of(study.search, points)
    assert set(importances) == {"mix.law.alpha", "mix.switch_epoch"}
    assert sum(importances.values()) == pytest.approx(1)


def test_a_trial_enqueued_by_another_program_is_not_a_point(tmp_path: Path) -> None:
    study, url = read(tmp_path), f"sqlite:///{tmp_path / 'optuna.db'}"
    proposals = Proposals(study, url)
    (first,) = proposals.ask()
    (opened,) = optuna.get_all_study_names(url)
    optuna.load_study(study_name=opened, storage=url).enqueue_trial({"mix.law.alpha": 1.0})
    (second,) = Proposals(study, url).ask()
    assert (first.number, second.number) == (0, 2)
    history = read_history(study, url)
    assert [point.number for point in history.points] == [0, 2]
    proposals.tell(replace(second, state="complete", objectives=(0.5,)))
    assert read_history(study, url).points[1].objectives == (0.5,)


@pytest.fixture
def study(tmp_path: Path) -> Study:
    return read(tmp_path / "study")


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'shared.db'}"


def owner_of(study: Study, folder: Path) -> Owner:
    return Owner.of(study, Store(str(folder)), is_writing=True)


def finished(proposals: Proposals, count: int) -> list[Point]:
    found = [point for _ in range(count) for point in proposals.ask()]
    for point in found:
        told = Point(number=point.number, values=point.values, state="complete", objectives=(0.1,))
        proposals.tell(told)
    return found


def test_two_homes_have_separate_searches(study: Study, url: str, tmp_path: Path) -> None:
    one, other = owner_of(study, tmp_path / "one"), owner_of(study, tmp_path / "other")
    first = Proposals(study, url, one)
    finished(first, 2)
    second = Proposals(study, url, other)
    assert second.points() == ()
    finished(second, 3)
    assert len(first.points()) == 2
    assert len(read_history(study, url, one).points) == 2
    assert len(read_history(study, url, other).points) == 3
    assert len(Proposals(study, url, one).points()) == 2


def test_a_store_without_an_identity_has_no_search_in_a_shared_storage(
    study: Study, url: str, tmp_path: Path
) -> None:
    finished(Proposals(study, url, owner_of(study, tmp_path / "one")), 1)
    nobody = Owner.of(study, Store(str(tmp_path / "new")), is_writing=False)
    assert read_history(study, url, nobody).points == ()
    assert not (tmp_path / "new").exists()


def test_a_search_without_an_owner_belongs_to_the_store_with_its_results(
    study: Study, tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path / 'optuna.db'}"
    driver = Driver(study, tmp_path / "home", url=url).run()
    with_results = Owner.of(study, driver.store, is_writing=True)
    stranger = owner_of(study, tmp_path / "stranger")
    assert read_history(study, driver.url, stranger).points == ()
    assert Proposals(study, driver.url, stranger).points() == ()
    assert len(read_history(study, driver.url, with_results).points) == 6
    assert len(Proposals(study, driver.url, with_results).points()) == 6
    former = optuna.load_study(study_name=name_of(study), storage=driver.url)
    assert former.user_attrs[OWNER] == with_results.identity
