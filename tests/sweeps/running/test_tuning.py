"""Tuning: the settings that Ray Tune gets for a study."""

import pytest
from ray import cloudpickle, tune

from sweeps.running.placement import Slots
from sweeps.running.tuning import _resources, _trainable


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
