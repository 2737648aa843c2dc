from dataclasses import replace
from pathlib import Path

import optuna
import pytest

from sweeps.searching.proposals import Proposals
from sweeps.searching.search_history import importances_of, read_history
from tests.sweeps.small_searches import asked, read


def test_importances_are_computed_from_means_and_sum_to_one(tmp_path: Path) -> None:
    study = read(tmp_path)
    url = str(tmp_path / "j.log")
    history = read_history(study, url)
    assert asked(study, url, 20, reopened=False).history() == read_history(study, url) != history
    assert study.search is not None
    points = [p for p in read_history(study, url).points if p.state == "complete"]
    assert importances_of(study.search, points[:1]) == {}
    importances = importances_of(study.search, points)
    assert set(importances) == {"mix.law.alpha", "mix.switch_epoch"}
    assert sum(importances.values()) == pytest.approx(1)


def test_a_trial_enqueued_by_another_program_is_not_a_point(tmp_path: Path) -> None:
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
