"""Tuning: the settings that Ray Tune gets for a study."""

import os
import subprocess
import sys

import pytest
from ray import cloudpickle, tune

from sweeps.running.placement import Slots
from sweeps.running.tuning import _resources, _trainable
from tests.faults.exposure import ray_variables


def test_ray_lists_actors_under_the_name_of_their_study() -> None:
    named = _trainable("digits", tune.PlacementGroupFactory([{"CPU": 1}]))
    sent = cloudpickle.loads(cloudpickle.dumps(named))
    assert sent.__qualname__ == repr(object.__new__(sent)) == "mixsweep digits"


@pytest.mark.parametrize(
    ("kind", "named", "label"),
    [
        (None, set(), None),
        ("accelerator_type:A100", {"accelerator_type:A100"}, None),
        ("zone=a", set(), [{"zone": "a"}]),
    ],
)
def test_runs_reserve_a_kind_of_node_by_its_resource_or_its_label(
    kind: str | None, named: set[str], label: list[dict[str, str]] | None
) -> None:
    slots = Slots(count=4, limit=4, cpus_per_run=1, gpus_per_run=0.5, on_gpu=True, kind=kind)
    asked = _resources(slots)
    assert asked.head_bundle_is_empty is False
    (bundle,) = asked.bundles
    assert bundle == {"CPU": 1, "GPU": 0.5} | dict.fromkeys(named, 0.001)
    assert asked == tune.PlacementGroupFactory(
        [bundle], **({} if label is None else {"bundle_label_selector": label})
    )


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
