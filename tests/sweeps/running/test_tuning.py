"""Tuning: the settings that Ray Tune gets for a study."""

from typing import Any

from ray import cloudpickle
from ray.tune.trainable.function_trainable import wrap_function

from sweeps.running.trainable import train_run
from sweeps.running.tuning import _named


def test_ray_lists_actors_under_the_name_of_their_study() -> None:
    named = _named(train_run, "digits")
    wrapped = wrap_function(named)
    assert repr(object.__new__(wrapped)) == "mixsweep digits"


def test_a_renamed_function_works_after_pickling() -> None:
    seen: list[dict[str, Any]] = []
    sent = cloudpickle.loads(cloudpickle.dumps(_named(print, "digits")))
    assert sent.__name__ == "mixsweep digits"
    _named(seen.append, "digits")({"run_key": "a"})
    assert seen == [{"run_key": "a"}]
