from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pytest

from reports.figures import learning_curves as curve_figures
from reports.figures.canvas import Strip
from reports.tables.table import tabulate
from sweeps.state.results import RunResult
from sweeps.study.study import Study
from tests.reports.decay import RampConfig, decay_study, decayed
from tests.reports.drawn import draw, numbers_of
from tests.reports.synthetic import AT_A_BOUND, at_a_bound, finish, make_study


def test_numbers_of_the_curves_are_the_summary_of_every_epoch(
    study: Study, results: tuple[RunResult, ...]
) -> None:
    lines = numbers_of(draw(study, results)["learning_curves"])
    assert len(lines) == 2 * 3 * 10
    (last,) = [
        line
        for line in lines
        if (line["metric"], line["arm"], line["epoch"]) == ("test/error", "uniform", "10")
    ]
    summary = tabulate(study, results).rows[2].summaries["test/error"]
    assert (float(last["mean"]), float(last["ci_low"])) == (summary.mean, summary.ci_low)
    assert sum(float(last[f"seed_{seed}"]) for seed in range(5)) / 5 == pytest.approx(summary.mean)


@pytest.mark.parametrize("errors", AT_A_BOUND)
def test_the_band_of_the_last_epoch_ends_at_the_limits_of_the_table(
    errors: Sequence[float],
) -> None:
    study = make_study()
    results = at_a_bound(study, errors)
    lines = numbers_of(draw(study, results)["learning_curves"])
    (last,) = [
        line
        for line in lines
        if (line["metric"], line["arm"], line["epoch"]) == ("test/error", "erm", "10")
    ]
    summary = tabulate(study, results).rows[0].summaries["test/error"]
    assert (float(last["ci_low"]), float(last["ci_high"])) == (summary.ci_low, summary.ci_high)


@pytest.mark.parametrize("epochs", [10, 150])
def test_hover_texts_with_means_cover_each_panel_once(epochs: int) -> None:
    study = make_study()
    arms = {arm: replace(config, epochs=epochs) for arm, config in study.arms.items()}
    study = replace(study, arms=arms)
    results = tuple(finish(run, epochs=epochs) for run in study.runs())
    figure = draw(study, results)["learning_curves"]
    panels: dict[float, list[Strip]] = {}
    for strip in figure.strips:
        panels.setdefault(float(strip.said.startswith("test error")), []).append(strip)
    assert len(panels) == 2
    for strips in panels.values():
        assert len(strips) == min(epochs, 60)
        assert len({(strip.top, strip.height) for strip in strips}) == 1
        for left, right in pairwise(strips):
            assert left.left + left.width == pytest.approx(right.left, abs=2e-4)
        assert 0 < strips[0].left < strips[-1].left + strips[-1].width < 1
        assert f"epoch {epochs}\n" in strips[-1].said
    (mean,) = (
        float(line["mean"])
        for line in numbers_of(figure)
        if (line["metric"], line["arm"], line["epoch"]) == ("test/error", "uniform", str(epochs))
    )
    assert f"\nuniform {100 * mean:.2f} [" in panels[1.0][-1].said


def test_an_unfinished_seed_is_drawn_thin_and_left_out_of_the_mean() -> None:
    study = make_study()
    results = tuple(
        finish(run, epochs=3 if (run.arm, run.seed) == ("erm", 0) else 10) for run in study.runs()
    )
    lines = numbers_of(draw(study, results)["learning_curves"])
    assert (lines[0]["n"], lines[0]["seed_0"] != "", lines[3]["seed_0"]) == ("4", True, "")


def test_the_caption_states_the_epoch_at_which_an_arm_changes() -> None:
    study = make_study(switch_epoch=6)
    captions = draw(study, tuple(map(finish, study.runs())))
    assert "change after epoch 6." in captions["learning_curves"].caption
    plain = make_study()
    captions = draw(plain, tuple(map(finish, plain.runs())))
    assert "change after" not in captions["learning_curves"].caption


def test_a_metric_with_an_explanation_is_explained_in_the_caption(
    study: Study, results: tuple[RunResult, ...]
) -> None:
    caption = draw(study, results)["learning_curves"].caption
    assert "Excess: training loss minus its lower bound" in caption


def test_another_problem_has_its_axis_panels_and_labels(decay: None) -> None:
    study = decay_study()
    figures = draw(study, tuple(decayed(run) for run in study.runs()))
    lines = numbers_of(figures["learning_curves"])
    assert [line["metric"] for line in lines[::8]] == ["margin", "norm"]
    assert [line["time"] for line in lines[:4]] == ["1.0", "10.0", "100.0", "1000.0"]
    assert figures["learning_curves"].caption.startswith("Margin and norm by time.")
    assert figures["final_values"].title == "Final margin"


def test_runs_with_one_record_have_no_learning_curves(decay: None) -> None:
    study = decay_study(epochs=1)
    assert list(draw(study, tuple(decayed(run) for run in study.runs()))) == ["final_values"]


def test_an_arm_with_many_changes_has_no_change_lines(decay: None) -> None:
    study = decay_study(epochs=6)
    arms = {arm: RampConfig(rate=1.0, epochs=epochs) for arm, epochs in (("few", 4), ("many", 6))}
    study = replace(study, arms=arms, baseline="few")
    caption = draw(study, tuple(decayed(run) for run in study.runs()))["learning_curves"].caption
    assert "change after step 1, 2, 3." in caption


def test_more_arms_than_fit_into_one_panel_get_separate_panels() -> None:
    study = make_study(arms=("erm", *(f"beta-{index}" for index in range(9))))
    figure = draw(study, tuple(map(finish, study.runs())))["learning_curves"]
    assert "Grey line: mean of erm." in figure.caption
    assert {line["metric"] for line in numbers_of(figure)} == {"test/error"}
    together = make_study(arms=("erm", *(f"beta-{index}" for index in range(7))))
    figure = draw(together, tuple(map(finish, together.runs())))["learning_curves"]
    assert "Grey" not in figure.caption


def test_panels_of_unfinished_arms_do_not_prevent_drawing_finished_arms(decay: None) -> None:
    study = decay_study(rates=tuple(float(rate) for rate in range(1, 11)))
    done = [decayed(run) for run in study.runs() if run.arm == "rate 3"]
    assert "learning_curves" in draw(study, tuple(done))


def test_panels_of_many_arms_have_one_scale_and_do_not_overlap(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    long = "a long name of an arm that takes three lines above its panel, number"
    study = make_study(arms=("erm", *(f"{long} {index}" for index in range(9))))
    drawn = {}
    finished = curve_figures.finished
    monkeypatch.setattr(
        curve_figures,
        "finished",
        lambda canvas, **words: drawn.update({words["name"]: canvas}) or finished(canvas, **words),
    )
    draw(study, tuple(map(finish, study.runs())))
    canvas = drawn["learning_curves"]
    panels = canvas.axes
    assert len({(axes.get_xlim(), axes.get_ylim()) for axes in panels}) == 1
    boxes = [axes.get_tightbbox() for axes in panels]
    assert max(box.count_overlaps(boxes) for box in boxes) == 1, "it overlaps itself alone"
    assert all(canvas.bbox.x0 <= box.x0 and box.x1 <= canvas.bbox.x1 for box in boxes)
    assert all(canvas.bbox.y0 <= box.y0 and box.y1 <= canvas.bbox.y1 for box in boxes)


@pytest.mark.parametrize("num_arms", [2, 10])
def test_each_metric_of_a_probe_is_drawn_in_a_panel_or_named_in_the_caption(num_arms: int) -> None:
    study = make_study(arms=("erm", *(f"arm{index}" for index in range(1, num_arms))))
    results = []
    for result in map(finish, study.runs()):
        assert result.stage is not None
        records = tuple(
            replace(record, metrics={**record.metrics, "train/weight_norm": 2.0, "train/own": 1.0})
            for record in result.records
        )
        results.append(replace(result, stage=replace(result.stage, records=records)))
    figure = draw(study, tuple(results))["learning_curves"]
    drawn = {line["metric"] for line in numbers_of(figure)}
    if num_arms == 2:
        assert drawn == {"test/error", "train/excess_loss", "train/weight_norm", "train/own"}
    else:
        assert drawn == {"test/error"}
        assert "no panel: excess training loss, weight norm, train/own" in figure.caption


def test_an_arm_without_a_drawn_metric_is_named_in_the_caption() -> None:
    study = make_study(arms=("erm", "uniform", "late"))
    results = []
    for result in (finish(run) for run in study.runs() if run.arm != "late"):
        assert result.stage is not None
        kept = {"test/error", *(["train/excess_loss"] if result.run.arm == "erm" else [])}
        records = tuple(
            replace(record, metrics={m: v for m, v in record.metrics.items() if m in kept})
            for record in result.records
        )
        results.append(replace(result, stage=replace(result.stage, records=records)))
    caption = draw(study, tuple(results))["learning_curves"].caption
    assert caption.count("do not measure") == 1
    assert "Arms that do not measure excess training loss: uniform." in caption
