from pathlib import Path

from mixup_core.config.written_forms import flatten
from sweeps.study.readouts import MeanOfLast
from tests.sweeps.reading.study_files import ARMS, read

CLAIM = (
    "claims:\n- says: Mixup wins\n  source: a paper\n"
    "  that: {less: [uniform, erm], metric: test/error}\n"
)


def test_each_sensitivity_value_is_trained_only_for_arms_of_claims(tmp_path: Path) -> None:
    arms = ARMS.replace("erm:", "midpoint: {mix.law: midpoint}\n  erm:")
    study = read(
        tmp_path,
        f"{arms}{CLAIM}sensitivity: {{lr_schedule: [constant, cosine], "
        "readout: [{mean_of_last: 3}]}\n",
    )
    assert study.beside == ("uniform lr_schedule=cosine", "erm lr_schedule=cosine")
    schedule, readout = study.variants
    assert (schedule.label, schedule.readout) == ("lr_schedule=cosine", None)
    assert schedule.arms == {"uniform": study.beside[0], "erm": study.beside[1]}
    assert flatten(study.arms[study.beside[0]])["lr_schedule"] == "cosine"
    assert readout.readout == MeanOfLast(evaluations=3)
    assert readout.arms == {"uniform": "uniform", "erm": "erm"}
    assert list(study.primary().arms) == [arm for arm in study.arms if arm not in study.beside]
    under = study.under(schedule)
    assert list(under.arms) == ["uniform", "erm"]
    assert under.claims == study.claims
    assert [run.key for run in under.runs_of("erm")] == [
        run.key for run in study.runs_of(study.beside[1])
    ]
