from dataclasses import replace

from mixup_core.images.config import MixConfig
from mixup_core.laws import Beta, Erm, Midpoint
from mixup_core.laws.schedules import EasyHardEasy, Phase, Phases
from reports.figures.canvas import arm_styles
from reports.figures.schedules import draw_schedules
from sweeps.study.study import Study
from tests.reports.synthetic import SMALL, rows_of

PHASES = Phases(phases=(Phase(law=Erm(), until=3), Phase(law=Beta(alpha=1.0), until=7), Midpoint()))


def with_schedules() -> Study:
    """Return a study of ten epochs: plain ERM, midpoint in phases, and uniform as a ramp."""
    mixes = {"midpoint": MixConfig(schedule=PHASES), "uniform": MixConfig(schedule=EasyHardEasy())}
    arms = {arm: replace(SMALL.arms[arm], mix=mix) for arm, mix in mixes.items()}
    return replace(SMALL, arms={**SMALL.arms, **arms})


def test_every_schedule_is_drawn_by_its_quantiles_and_each_boundary_is_in_the_numbers() -> None:
    study = with_schedules()
    (figure,) = draw_schedules(study, arm_styles(study.arms))
    assert (b"<!-- midpoint -->" in figure.svg, b"<!-- erm -->" in figure.svg) == (True, False)
    rows = rows_of(figure.numbers)
    phases = [row for row in rows if row["arm"] == "midpoint"]
    assert [(row["from"], row["until"], row["law"]) for row in phases] == [
        ("0", "3", "erm"), ("3", "7", "{'beta': 1.0}"), ("7", "10", "midpoint"),
    ]  # fmt: skip
    bands = [tuple(round(float(row[f"lam_q{q}"]), 9) for q in ("05", "50", "95")) for row in phases]
    assert bands == [(1.0, 1.0, 1.0), (0.05, 0.5, 0.95), (0.5, 0.5, 0.5)]
    ramp = [row for row in rows if row["arm"] == "uniform"]
    assert len(ramp) == 10
    widths = [float(row["lam_q95"]) - float(row["lam_q05"]) for row in ramp]
    assert widths.index(min(widths)) == 5
    assert draw_schedules(study, arm_styles(study.arms)) == (figure,)
