from dataclasses import replace

import pytest

from sweeps.reading.study_file import load_study
from sweeps.running.placement import Node, Placement, PlacementError, require_gpus
from sweeps.study.budget import Budget
from sweeps.study.study import Study

TWO_GPUS = Node(cpus=8, gpus=2)
HEAD = Node(cpus=0, gpus=0)


@pytest.mark.parametrize("share", [float("nan"), 1.5, 2, 0.4, 0.7])
def test_a_share_that_does_not_fill_gpus_evenly_is_refused(share: float) -> None:
    with pytest.raises(PlacementError, match="--gpus-per-run must be 0, 1 or 1/k"):
        Placement(gpus_per_run=share)


@pytest.mark.parametrize(
    ("placement", "runs", "cpus"),
    [
        (Placement(), 100, 8),
        (Placement(), 3, 3),
        (Placement(), 0, 1),
        (Placement(slots=2), 100, 2),
        (Placement(slots=20), 100, 20),
    ],
)
def test_an_own_cluster_has_as_many_cpus_as_the_runs_can_use(
    placement: Placement, runs: int, cpus: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sweeps.running.placement.usable_cpus", lambda: 8)
    assert placement.cpus_here(runs) == cpus


def test_a_run_uses_a_gpu_if_the_cluster_has_gpus() -> None:
    on_gpus = Placement().on([HEAD, TWO_GPUS, TWO_GPUS], runs=45, growth="none")
    assert (on_gpus.count, on_gpus.gpus_per_run, on_gpus.on_gpu) == (4, 1, True)
    on_cpus = Placement().on([HEAD, Node(cpus=3, gpus=0)], runs=45, growth="none")
    assert (on_cpus.count, on_cpus.gpus_per_run, on_cpus.on_gpu) == (3, 0, False)


@pytest.mark.parametrize(
    ("runs", "share", "count"), [(100, 1 / 3, 12), (12, 1 / 3, 12), (11, 1 / 2, 8), (7, 1, 4)]
)
def test_the_gpu_share_is_no_smaller_than_needed_for_all_runs(
    runs: int, share: float, count: int
) -> None:
    placed = Placement(gpus_per_run=0.33).on([TWO_GPUS, TWO_GPUS], runs=runs, growth="none")
    assert (placed.gpus_per_run, placed.count) == (share, count)


MIXED = [
    HEAD,
    Node(cpus=8, gpus=4, kinds=frozenset({"CPU", "accelerator_type:A100", "zone=a"})),
    Node(cpus=8, gpus=1, kinds=frozenset({"CPU", "accelerator_type:H200", "zone=b", "fast"})),
]


@pytest.mark.parametrize(
    ("kind", "resource", "count"),
    [
        (None, None, 5),
        ("A100", "accelerator_type:A100", 4),
        ("accelerator_type:A100", "accelerator_type:A100", 4),
        ("H200", "accelerator_type:H200", 1),
        ("fast", "fast", 1),
        ("zone=a", "zone=a", 4),
    ],
)
def test_runs_get_slots_on_nodes_of_the_requested_kind_only(
    kind: str | None, resource: str | None, count: int
) -> None:
    placed = Placement(kind=kind).on(MIXED, runs=100, growth="by hand")
    assert (placed.kind, placed.count, placed.gpus_per_run) == (resource, count, 1)


@pytest.mark.parametrize("kind", ["B200", "a100", "zone=c"])
def test_a_kind_of_node_that_is_absent_is_refused_unless_it_may_join(kind: str) -> None:
    for growth, slots in (("none", None), ("none", 2), ("by hand", None)):
        with pytest.raises(PlacementError, match=r"\(accelerator types here: A100, H200\)"):
            Placement(kind=kind, slots=slots).on(MIXED, runs=100, growth=growth)
    waiting = Placement(kind=kind, gpus_per_run=1)
    assert waiting.on(MIXED, runs=9, growth="autoscaler").count == 9
    assert replace(waiting, slots=2).on(MIXED, runs=9, growth="by hand").count == 2


def test_a_run_larger_than_any_node_is_refused_instead_of_waiting() -> None:
    nodes = [Node(cpus=8, gpus=0)]
    with pytest.raises(PlacementError, match="a run takes 1 GPUs and 1 CPU, the largest node has"):
        Placement(gpus_per_run=1).on(nodes, runs=1, growth="none")
    for growth in ("by hand", "autoscaler"):
        with pytest.raises(PlacementError, match="0 CPUs; if larger nodes will join, add --slots"):
            Placement(gpus_per_run=0).on([HEAD], runs=1, growth=growth)


@pytest.mark.parametrize("head", [HEAD, Node(cpus=4, gpus=0)])
def test_a_cluster_scaled_to_zero_waits_for_gpus_only_if_the_user_asks_for_them(head: Node) -> None:
    for slots in (None, 8):
        with pytest.raises(PlacementError, match="add --gpus-per-run 1 to wait for them, or") as no:
            Placement(slots=slots).on([head], runs=8, growth="autoscaler")
        assert "\n" not in str(no.value)
    waiting = Placement(gpus_per_run=1).on([head], runs=8, growth="autoscaler")
    assert (waiting.count, waiting.limit, waiting.on_gpu) == (8, None, True)
    some = Placement(gpus_per_run=1, slots=4).on([head], runs=8, growth="autoscaler")
    assert (some.count, some.limit) == (4, 4)


def test_cpu_runs_use_existing_nodes_of_an_autoscaled_cluster_without_new_nodes() -> None:
    on_cpus = Placement(gpus_per_run=0)
    placed = on_cpus.on([Node(cpus=4, gpus=0)], runs=8, growth="autoscaler")
    assert (placed.count, placed.limit, placed.on_gpu) == (4, 4, False)
    with pytest.raises(PlacementError, match="no node has room for a run"):
        on_cpus.on([HEAD], runs=8, growth="autoscaler")
    grown = replace(on_cpus, slots=6).on([HEAD], runs=8, growth="autoscaler")
    assert (grown.count, grown.limit) == (6, 6)


def test_a_static_cpu_cluster_trains_on_cpus_unless_it_must_grow() -> None:
    nodes = [Node(cpus=4, gpus=0)]
    placed = Placement().on(nodes, runs=8, growth="by hand")
    assert (placed.count, placed.on_gpu) == (4, False)
    with pytest.raises(PlacementError, match="add --gpus-per-run 1 to wait for nodes with GPUs"):
        Placement(slots=8).on(nodes, runs=8, growth="by hand")


def test_gpus_that_a_static_cluster_will_never_have_are_refused_with_the_reason() -> None:
    for share in (1, 0.5):
        with pytest.raises(PlacementError, match="no autoscaler starts one; remove --gpus-per-run"):
            Placement(gpus_per_run=share).on([Node(cpus=4, gpus=0)], runs=8, growth="by hand")
    joining = Placement(gpus_per_run=1, slots=8).on([HEAD], runs=45, growth="by hand")
    assert (joining.count, joining.limit, joining.gpus_per_run) == (8, 8, 1)


def test_a_budget_of_gpu_hours_is_refused_for_runs_without_a_gpu() -> None:
    grid, search = load_study("digits"), load_study("search-alpha-switch")
    hours, gpu_hours = Budget(hours=1.0), Budget(hours=1.0, gpu_hours=5.0)

    def searched(budget: Budget) -> Study:
        strategy = replace(search.search.strategy, budget=budget)
        return replace(search, search=replace(search.search, strategy=strategy))

    on_cpus = Placement().on([HEAD, Node(cpus=3, gpus=0)], runs=4, growth="none")
    on_gpus = Placement(device="cpu").on([TWO_GPUS], runs=4, growth="none")
    for path, unlimited, limited in (
        ("budget", replace(grid, budget=hours), replace(grid, budget=gpu_hours)),
        ("search.budget", searched(hours), searched(gpu_hours)),
    ):
        require_gpus(unlimited, on_cpus)
        require_gpus(limited, on_gpus)
        with pytest.raises(PlacementError) as refused:
            require_gpus(limited, on_cpus)
        assert f"needs runs on GPUs, got ({path}.gpu_hours=5, gpus_per_run=0)" in str(refused.value)
