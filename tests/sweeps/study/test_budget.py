import pytest

from mixup_core.records import EpochRecord
from mixup_core.store.manifests import EpochFacts, Stage
from sweeps.study.budget import Budget, Spending, gpus_of

HOUR = 3_600_000


def stage(*ends: float, gpus: str = "") -> Stage:
    """Return a stage whose epochs ended at given hours."""
    return Stage(
        key="k",
        records=tuple(EpochRecord(epoch=epoch, metrics={}) for epoch in range(len(ends))),
        facts=tuple(EpochFacts(seconds=3600.0, stored_at_ms=int(HOUR * end)) for end in ends),
        environment={"gpus_per_run": gpus} if gpus else {},
        state=None,
    )


def test_an_exceeded_budget_names_the_reached_limit() -> None:
    budget = Budget(hours=2.0, gpu_hours=0.5, runs=9)
    assert budget.exceeded(1.9, 0.4, 8) is None
    assert budget.exceeded(2.0, 0.4) == "used up its budget of 2 hours"
    assert budget.exceeded(1.0, 0.5) == "used up its budget of 0.5 GPU-hours"
    assert budget.exceeded(1.0, 0.4, 9) == "used up its budget of 9 runs"
    assert budget.limits == {"hours": 2.0, "gpu_hours": 0.5, "runs": 9}
    assert Budget().limits == {}


def test_hours_count_only_time_with_a_run_in_training() -> None:
    spending = Spending()
    spending.add([stage(1.0, 2.0), stage(1.5, 2.5), None, stage(10.0)])  # 0 to 2.5, and 9 to 10
    assert spending.hours == pytest.approx(3.5)
    assert spending.training_hours == pytest.approx(5.0)
    assert spending.gpu_hours == 0.0


def test_a_shared_epoch_counts_once_and_gpu_hours_use_the_gpu_share() -> None:
    spending = Spending()
    for _ in range(2):
        spending.add([stage(1.0, gpus="0.5"), stage(1.0, 2.0, gpus="0.5")])
    assert spending.training_hours == pytest.approx(2.0)
    assert spending.gpu_hours == pytest.approx(1.0)


@pytest.mark.parametrize("gpus", [1.0, 0.5, 1 / 3, 0.0625, 1e-5, 8.0])
def test_the_gpus_of_a_run_are_read_as_they_are_written(gpus: float) -> None:
    assert gpus_of(stage(1.0, gpus=f"{gpus:g}")) == float(f"{gpus:g}")


@pytest.mark.parametrize(
    "text", ["abc", "nan", "inf", "-1", "1e400", "1e+99", "1_0", " 1", "1\n", "\u0663", "9" * 5000]
)
def test_gpus_that_another_program_wrote_as_no_number_count_as_none(text: str) -> None:
    spending = Spending()
    spending.add([stage(1.0, gpus=text)])
    assert (spending.gpu_hours, spending.training_hours) == (0.0, 1.0)
