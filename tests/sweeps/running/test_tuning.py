"""Tuning: the settings that Ray Tune gets for a study."""

from typing import Any

from ray import cloudpickle
from ray.tune.trainable.function_trainable import wrap_function

from sweeps.running.trainable import train_run
from sweeps.running.tuning import _named


def test_the_actors_of_a_study_have_its_name_in_what_ray_lists() -> None:
    named = _named(train_run, "digits")
    wrapped = wrap_function(named)
    assert repr(object.__new__(wrapped)) == "mixsweep digits"


def test_a_named_function_does_in_a_worker_what_it_did_here() -> None:
    seen: list[dict[str, Any]] = []
    sent = cloudpickle.loads(cloudpickle.dumps(_named(print, "digits")))
    assert sent.__name__ == "mixsweep digits"
    _named(seen.append, "digits")({"run_key": "a"})
    assert seen == [{"run_key": "a"}]
