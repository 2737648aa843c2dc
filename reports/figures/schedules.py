"""Schedules: quantiles of the mixing weight lam in each epoch, for arms that change its law."""

import textwrap
from collections.abc import Mapping
from itertools import groupby
from typing import Any

import numpy as np
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import MaxNLocator

from mixup_core.config.written_forms import spelled
from mixup_core.laws import Law
from reports.figures.canvas import PANEL_INCHES, Figure, Styles, finished, styled
from reports.numbers.spelling import spell_csv
from sweeps.study.study import Study

LEVELS = (0.05, 0.5, 0.95)

_COLUMNS = 3


def draw_schedules(study: Study, styles: Styles) -> tuple[Figure, ...]:
    """Return the figure of the quantiles of lam in each epoch, for arms that change its law."""
    laws = {arm: _laws(study, arm) for arm in study.arms}
    changing = {arm: of_arm for arm, of_arm in laws.items() if len(set(of_arm)) > 1}
    if not changing:
        return ()
    drawn = {arm: _quantiles(of_arm) for arm, of_arm in changing.items()}
    with styled():
        return (
            finished(
                _draw(drawn, styles),
                name="schedules",
                title="Schedules of the mixing weight",
                caption="Mixing weight lam in each epoch, for the arms whose law changes. Line: "
                "median. Band: from the 5 % to the 95 % quantile. At lam = 1 nothing is mixed; "
                f"{_shape_of_bands(changing)} The quantiles follow from the study file; they are "
                "not measured.",
                numbers=_numbers(changing, drawn),
            ),
        )


def _shape_of_bands(laws: Mapping[str, tuple[Law, ...]]) -> str:
    """Return a phrase for the caption on the symmetry of the laws."""
    mixing = dict.fromkeys(law for of_arm in laws.values() for law in of_arm if law.mixes)
    skewed = [law.caption for law in mixing if not law.is_symmetric]
    if skewed:
        return f"the laws that mix are symmetric about 1/2, except {', '.join(skewed)}."
    return "the laws that mix are symmetric about 1/2."


def _laws(study: Study, arm: str) -> tuple[Law, ...]:
    """Return the law of each epoch of an arm; empty if the problem has no laws."""
    law_at = study.problem.presentation.law_at
    config = study.arms[arm]
    return () if law_at is None else tuple(law_at(config, e) for e in range(config.epochs))


def _quantiles(laws: tuple[Law, ...]) -> list[tuple[float, ...]]:
    known = {law: tuple(map(float, law.quantiles(np.array(LEVELS)))) for law in dict.fromkeys(laws)}
    return [known[law] for law in laws]


def _draw(drawn: Mapping[str, list[tuple[float, ...]]], styles: Styles) -> Canvas:
    columns = min(_COLUMNS, len(drawn))
    rows = -(-len(drawn) // columns)
    canvas = Canvas(
        figsize=(max(1.3, columns * 0.66) * PANEL_INCHES, 0.4 + 1.6 * rows), layout="constrained"
    )
    panels = canvas.subplots(rows, columns, squeeze=False, sharey=True).flat
    for axes, (arm, of_arm) in zip(panels, drawn.items(), strict=False):
        edges = list(range(len(of_arm) + 1))
        low, median, high = ([*line, line[-1]] for line in zip(*of_arm, strict=True))
        colour = styles[arm][0]
        axes.fill_between(edges, low, high, step="post", color=colour, alpha=0.25, linewidth=0)
        axes.step(edges, median, where="post", color=colour)
        axes.set_title("\n".join(textwrap.wrap(arm, 28)), fontsize=8)
        axes.set_xlim(0, len(of_arm))
        axes.set_ylim(-0.03, 1.03)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=5))
    for axes in panels[len(drawn) :]:
        axes.set_visible(False)
    canvas.supxlabel("epoch", fontsize=9)
    canvas.supylabel("mixing weight lam", fontsize=9)
    return canvas


def _numbers(
    laws: Mapping[str, tuple[Law, ...]], drawn: Mapping[str, list[tuple[float, ...]]]
) -> str:
    """Return the drawn quantiles as CSV, one row per arm and range of epochs with the same law."""
    records: list[dict[str, Any]] = []
    for arm, of_arm in laws.items():
        first = 0
        for _, stretch in groupby(of_arm):
            until = first + len(list(stretch))
            low, median, high = drawn[arm][first]
            # Frozen: columns of `figures/schedules.csv`, which scripts read by name;
            # tests/reports/figures/test_schedules.py fails.
            records.append(
                {"arm": arm, "from": first, "until": until, "law": str(spelled(of_arm[first]))}
                | {"lam_q05": low, "lam_q50": median, "lam_q95": high}
            )
            first = until
    return spell_csv(records)
