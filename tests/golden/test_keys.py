from collections.abc import Callable
from typing import Any

import pytest

from tests.golden.freeze_keys import (
    defaults_frozen,
    defaults_now,
    keyed_study,
    keys_frozen,
    keys_now,
)
from tests.golden.project import flatten, run_key


@pytest.mark.parametrize(
    ("frozen", "now"), [(keys_frozen, keys_now), (defaults_frozen, defaults_now)]
)
def test_keys_and_defaults_are_as_frozen(
    frozen: Callable[[], dict[str, Any]], now: Callable[[], dict[str, Any]]
) -> None:
    """A changed key hides the stored results, so that all runs are trained again.

    Keys leave out defaults, so a changed default would give old results a new meaning.
    """
    old, new = (
        {(place, name): value for place, rows in found.items() for name, value in rows.items()}
        for found in (frozen(), now())
    )
    moved = {name: (value, new.get(name)) for name, value in old.items() if new.get(name) != value}
    assert not moved
    assert not new.keys() - old.keys(), "`make golden` freezes them"


def test_the_keyed_study_varies_every_field_that_is_not_set_per_run() -> None:
    study = keyed_study()
    paths = {path for config in study.arms.values() for path in flatten(config)}
    filled_in_for_each_run = {"seed", "data.fold", "objective.teacher_key"}
    assert paths - set(study.varying()) == filled_in_for_each_run
    assert len(study.seeds) > 1


def test_no_two_runs_of_the_keyed_study_share_a_key() -> None:
    runs = keyed_study().runs()
    assert len({run_key(run.config) for run in runs}) == len(runs)
