import pytest

from reports.tables.table import tabulate
from tests.reports.drawn import draw, numbers_of
from tests.reports.synthetic import AT_A_BOUND, SMALL, at_a_bound, finish, make_study, with_metrics


def test_curves_have_every_epoch_and_end_at_the_interval_in_the_table() -> None:
    results = at_a_bound(SMALL, AT_A_BOUND[0])
    lines = numbers_of(draw(SMALL, results)["learning_curves"])
    assert len(lines) == 2 * 3 * 10
    last = {
        line["arm"]: line
        for line in lines
        if (line["metric"], line["epoch"]) == ("test/error", "10")
    }
    for row in tabulate(SMALL, results).rows:
        summary, line = row.summaries["test/error"], last[row.arm]
        drawn = tuple(float(line[name]) for name in ("mean", "ci_low", "ci_high"))
        assert drawn == (summary.mean, summary.ci_low, summary.ci_high)
        own = [float(line[f"seed_{seed}"]) for seed in range(5)]
        assert sum(own) / 5 == pytest.approx(summary.mean)


def test_an_unfinished_seed_is_drawn_thin_and_left_out_of_the_mean() -> None:
    results = tuple(
        finish(run, epochs=3 if (run.arm, run.seed) == ("erm", 0) else 10) for run in SMALL.runs()
    )
    lines = numbers_of(draw(SMALL, results)["learning_curves"])
    assert (lines[0]["n"], lines[0]["seed_0"] != "", lines[3]["seed_0"]) == ("4", True, "")


@pytest.mark.parametrize("num_arms", [2, 10])
def test_each_metric_of_a_probe_is_drawn_in_a_panel_or_named_in_the_caption(num_arms: int) -> None:
    study = make_study(arms=("erm", *(f"arm{index}" for index in range(1, num_arms))))
    more = {"train/weight_norm": 2.0, "train/own": 1.0}
    results = [with_metrics(finish(run), lambda r: {**r.metrics, **more}) for run in study.runs()]
    figure = draw(study, tuple(results))["learning_curves"]
    drawn = {line["metric"] for line in numbers_of(figure)}
    if num_arms == 2:
        assert drawn == {"test/error", "train/excess_loss", "train/weight_norm", "train/own"}
    else:
        assert drawn == {"test/error"}
        assert "no panel: excess training loss, weight norm, train/own" in figure.caption
