from tests.golden.freeze_keys import (
    defaults_frozen,
    defaults_now,
    keyed_study,
    keys_frozen,
    keys_now,
)
from tests.golden.project import flatten, run_key


def test_frozen_runs_keep_their_keys() -> None:
    """A changed key hides the stored results, so that all runs are trained again."""
    now = keys_now()
    moved = [
        f"{study}: {run}: {keys} is now {now.get(study, {}).get(run)}"
        for study, runs in keys_frozen().items()
        for run, keys in runs.items()
        if now.get(study, {}).get(run) != keys
    ]
    assert not moved, "\n".join(moved)


def test_every_run_has_frozen_keys() -> None:
    frozen = keys_frozen()
    new = [
        f"{study}: {run}"
        for study, runs in keys_now().items()
        for run in runs
        if run not in frozen.get(study, {})
    ]
    assert not new, "`make golden` freezes them:\n" + "\n".join(new)


def test_frozen_defaults_are_unchanged() -> None:
    """Keys leave out defaults, so a changed default would give old results a new meaning."""
    now = defaults_now()
    moved = [
        f"{problem}: {path}: {default!r} is now {now.get(problem, {}).get(path)!r}"
        for problem, fields in defaults_frozen().items()
        for path, default in fields.items()
        if now.get(problem, {}).get(path) != default
    ]
    assert not moved, "\n".join(moved)


def test_every_default_has_a_frozen_value() -> None:
    frozen = defaults_frozen()
    new = [
        f"{problem}: {path}"
        for problem, fields in defaults_now().items()
        for path in fields
        if path not in frozen.get(problem, {})
    ]
    assert not new, "`make golden` freezes them:\n" + "\n".join(new)


def test_the_keyed_study_varies_every_field_that_is_not_set_per_run() -> None:
    study = keyed_study()
    paths = {path for config in study.arms.values() for path in flatten(config)}
    filled_in_for_each_run = {"seed", "data.fold", "objective.teacher_key"}
    assert paths - set(study.varying()) == filled_in_for_each_run
    assert len(study.seeds) > 1


def test_no_two_runs_of_the_keyed_study_share_a_key() -> None:
    runs = keyed_study().runs()
    assert len({run_key(run.config) for run in runs}) == len(runs)
