"""Tuning: the settings that Ray Tune gets for a study."""

import os
import subprocess
import sys
from typing import Any

import pytest
from ray import cloudpickle
from ray.tune.trainable.function_trainable import wrap_function

from sweeps.running.trainable import train_run
from sweeps.running.tuning import _named
from tests.faults.exposure import ray_variables


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


@pytest.mark.parametrize("address", ["", "127.0.0.1:1"])
def test_a_launch_imports_tune_with_its_own_variables_only(address: str) -> None:
    program = (
        "import os\n"
        "import sweeps.running.launch, sweeps.running.tuning\n"
        "print(*sorted(name for name in os.environ if name.startswith('TUNE_')))\n"
        "print(os.environ['TUNE_DISABLE_SIGINT_HANDLER'])"
    )
    hostile = dict.fromkeys(ray_variables("TUNE_"), "junk") | {"RAY_ADDRESS": address}
    done = subprocess.run(
        [sys.executable, "-c", program], env=os.environ | hostile, stdout=-1, check=True, text=True
    )
    assert done.stdout.splitlines() == [
        "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS TUNE_DISABLE_SIGINT_HANDLER TUNE_GLOBAL_CHECKPOINT_S",
        "1",
    ]
