"""Pictures of the documentation: `make docs` draws them from the code and from published results.

    python -m docs.pictures FOLDER

draws them alone. The same code, data and versions give the same bytes. Images are of Fashion-MNIST
if it is on this machine, and otherwise of scikit-learn's digits.
"""

import csv
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch.nn.functional import interpolate

from mixsweep.plugins import stream
from mixup_core.images.data.data_config import DataConfig
from mixup_core.images.data.datasets import load
from mixup_core.keys import stage_keys
from mixup_core.laws.schedules import Easy, EasyHardEasy, Hard
from mixup_core.mixing.operation import Operation
from mixup_core.problem import DataError
from reports.figures.canvas import STYLE
from sweeps.reading.study_file import study_of

PUBLISHED = Path(__file__).parents[1] / "reports" / "published"
BLUE, ORANGE, GREEN, GREY = "#0072b2", "#d55e00", "#009e73", "#8a8a8a"
"""Colours that people with any colour vision can tell apart (Okabe and Ito)."""
FILLS = {BLUE: "#dcebf5", ORANGE: "#fae3d3", GREEN: "#d5efe6", GREY: "#efefef"}


def operations() -> Figure:
    """Draw two images, and what each operation makes of them with the weight 1/2."""
    own, beside, source = _two_images()
    size, lam = (own.shape[2], own.shape[3]), np.array([0.5])
    mixed = {}
    for name, kind in sorted(Operation.catalogue.items()):
        operation, weight = kind(), torch.tensor(lam, dtype=torch.float32)
        if name == "manifold":
            continue  # mixes features inside the network
        drawn = torch.as_tensor(operation.draw(lam, size, stream(1, "mixing operation")))
        if operation.needs_saliency:
            contrast = torch.stack([_contrast(own), _contrast(beside)])
            mixed[name], _ = operation.mix_salient(own, beside, weight, drawn, contrast)
        elif operation.is_linear:
            mixed[name] = 0.5 * own + 0.5 * beside
        else:
            mixed[name], _ = operation.mix(own, beside, weight, drawn)
    shown = {"image": own, "partner": beside, **mixed}
    figure = Figure((8.2, 3.6), layout="constrained")
    for axes, (name, image) in zip(figure.subplots(2, 5).flat, shown.items(), strict=True):
        axes.imshow(image[0, 0], cmap="gray", vmin=0, vmax=1)
        axes.set_title(name, color=GREY if name in {"image", "partner"} else "black")
        axes.axis("off")
    figure.supxlabel(f"lam = 1/2 on two images of {source}", fontsize=8)
    return figure


def _two_images() -> tuple[torch.Tensor, torch.Tensor, str]:
    try:
        images, source = load(DataConfig(name="fashion-mnist")).train, "Fashion-MNIST"
        chosen = [_first(images.labels, 0), _first(images.labels, 9)]
    except (DataError, OSError):
        images, source = load(DataConfig(name="digits")).train, "scikit-learn's digits"
        chosen = [_first(images.labels, 0), _first(images.labels, 7)]
    pixels = images.pixels[chosen].float()
    pixels = interpolate(pixels / pixels.max(), (32, 32), mode="bilinear", antialias=True)
    return pixels[:1], pixels[1:], source


def _first(labels: torch.Tensor, label: int) -> int:
    return int((labels == label).nonzero()[0])


def _contrast(images: torch.Tensor) -> torch.Tensor:
    """Return the contrast of each pixel with its neighbours, in place of the loss gradient."""
    across, down = torch.gradient(images[:, 0], dim=(1, 2))
    return (across**2 + down**2).sqrt()


def laws() -> Figure:
    """Draw the densities of the weight under some laws."""
    levels = np.linspace(0.0005, 0.9995, 2000)
    from mixup_core.laws import Beta, Truncated

    shown = {
        "beta: 0.2": (Beta(alpha=0.2), BLUE, "-"),
        "beta: 1 (uniform)": (Beta(alpha=1.0), ORANGE, "-"),
        "beta: 4": (Beta(alpha=4.0), GREEN, "-"),
        "truncated: alpha 1, 0.3 to 0.7": (Truncated(alpha=1.0, low=0.3, high=0.7), GREY, "--"),
    }
    figure = Figure((6.4, 2.9), layout="constrained")
    axes = figure.subplots()
    for name, (law, colour, line) in shown.items():
        at = law.quantiles(levels)
        density = np.diff(levels) / np.maximum(np.diff(at), 1e-9)
        middle = (at[1:] + at[:-1]) / 2
        ends = ([middle[0]], [middle[-1]]) if name.startswith("trunc") else ([], [])
        x, y = np.concatenate([ends[0], middle, ends[1]]), density
        y = np.concatenate([[0.0] * len(ends[0]), density, [0.0] * len(ends[1])])
        axes.plot(x, y, line, color=colour, label=name)
    for at, name in ((0.5, "midpoint"), (1.0, "erm")):
        axes.annotate(
            "", (at, 4.4), (at, 0), arrowprops={"arrowstyle": "-|>", "color": "black", "lw": 1.4}
        )
        axes.text(at - 0.01, 4.15, name, ha="right")
    axes.set(xlabel="weight lam of an image", ylabel="density", ylim=(0, 4.6), xlim=(-0.01, 1.02))
    axes.legend(loc="upper left", bbox_to_anchor=(0.06, 1.0))
    return figure


def schedules() -> Figure:
    """Draw alpha by epoch for the schedules that change it."""
    figure = Figure((6.4, 2.5), layout="constrained")
    axes, epochs = figure.subplots(), 60
    shown = (
        ("easy", Easy(), BLUE),
        ("hard", Hard(), ORANGE),
        ("easy-hard-easy", EasyHardEasy(), GREEN),
    )
    for name, schedule, colour in shown:
        alphas = [getattr(schedule.law_at(e, epochs), "alpha", np.nan) for e in range(epochs)]
        axes.plot(range(epochs), alphas, color=colour, label=name)
    axes.set(xlabel="epoch", ylabel="alpha of Beta(alpha, alpha)", yscale="log")
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def shared_epochs() -> Figure:
    """Draw which epochs the three arms of a study train, and which they share."""
    study = study_of({
        "study": "stop-early",
        "base": {
            "data": {"name": "digits"}, "model": {"name": "mlp"}, "epochs": 6, "batch_size": 64,
        },
        "arms": {
            "erm": {"mix.law": "erm"},
            "uniform": {"mix.law": {"beta": 1.0}},
            "stopped": {"mix.law": {"beta": 1.0}, "mix.switch_epoch": 3},
        },
        "seeds": 1,
    })  # fmt: skip
    figure = Figure((6.8, 2.1), layout="constrained")
    axes, first = figure.subplots(), dict[str, str]()
    colours = dict(zip(study.arms, (GREY, BLUE, ORANGE), strict=True))
    for row, run in enumerate(study.runs()):
        for epoch, key in enumerate(stage_keys(run.config)):
            owner = first.setdefault(key, run.arm)
            colour, is_own = colours[owner], owner == run.arm
            axes.barh(-row, 0.92, left=epoch + 0.04, height=0.62, color=FILLS[colour],
                      edgecolor=colour, hatch="" if is_own else "///", lw=1.1)  # fmt: skip
            text = key[:4] if is_own else f"= {key[:4]}"
            axes.text(epoch + 0.5, -row, text, ha="center", va="center", family="monospace",
                      fontsize=7, bbox={"fc": "white", "ec": "none", "pad": 1})  # fmt: skip
    axes.set(yticks=[0, -1, -2], yticklabels=list(study.arms), xlim=(0, 6), xticks=range(7))
    axes.set(xlabel="epochs; each box has the first letters of its stage key")
    axes.grid(visible=False)
    return figure


def pairing() -> Figure:
    """Draw the test error of each run of the quickstart; a line joins the runs of a seed."""
    arms = ("erm", "midpoint", "uniform")
    errors = {(row["arm"], row["seed"]): float(row["test/error"]) * 100
              for row in _rows("quickstart", "runs.csv")}  # fmt: skip
    seeds = sorted({seed for _, seed in errors})
    figure = Figure((6.4, 2.8), layout="constrained")
    axes = figure.subplots()
    for seed in seeds:
        values = [errors[arm, seed] for arm in arms]
        axes.plot(range(3), values, "o-", color=BLUE, lw=1, ms=4, alpha=0.75)
        axes.text(-0.06, values[0], f"seed {seed}", ha="right", va="center", fontsize=7)
    means = [np.mean([errors[arm, seed] for seed in seeds]) for arm in arms]
    axes.plot(range(3), means, "_", color="black", ms=26, mew=2.2)
    axes.set(xticks=range(3), xticklabels=arms, xlim=(-0.4, 2.3), ylabel="test error, %")
    return figure


def search_history() -> Figure:
    """Draw the validation error of each point of a search, in the order of the proposals."""
    rows = [row for row in _rows("search-alpha-switch", "points.csv") if row["val/error_mean"]]
    points = {int(row["arm"].removeprefix("point ")): row for row in rows
              if row["arm"].startswith("point ")}  # fmt: skip
    numbers = sorted(points)
    values = [100 * float(points[number]["val/error_mean"]) for number in numbers]
    pruned = [points[number]["state"] != "complete" for number in numbers]
    figure = Figure((6.4, 2.7), layout="constrained")
    axes = figure.subplots()
    for is_pruned, fill, name in ((False, BLUE, "point"), (True, "white", "pruned point")):
        chosen = [(n, v) for n, v, p in zip(numbers, values, pruned, strict=True) if p == is_pruned]
        if chosen:
            axes.plot(*zip(*chosen, strict=True), "o", mfc=fill, color=BLUE, ms=4, label=name)
    axes.step(
        numbers, np.minimum.accumulate(values), where="post", color=ORANGE, label="best so far"
    )
    axes.set(xlabel="point, in the order of the proposals", ylabel="validation error, %")
    axes.set_xticks(numbers[::5])
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def planned_looks() -> Figure:
    """Draw the interval of each claim at each planned look of a study."""
    rows = _rows("quickstart-until-decided", "looks.csv")
    claims = list(dict.fromkeys(row["says"] for row in rows))
    figure = Figure((6.8, 2.7), layout="constrained")
    for axes, says in zip(figure.subplots(1, len(claims), sharey=True), claims, strict=True):
        for row in (row for row in rows if row["says"] == says):
            at, low, high = int(row["seeds"]), 100 * float(row["low"]), 100 * float(row["high"])
            colour = GREY if row["result"] == "unfinished" else BLUE
            axes.plot([at, at], [low, high], color=colour, lw=2.4)
            axes.plot(at, 100 * float(row["value"]), "o", color=colour, ms=4)
            if row["result"] != "unfinished":
                axes.annotate(row["result"], (at, high), (0, 5), textcoords="offset points",
                              ha="center", color=colour)  # fmt: skip
        axes.axhline(0, color="black", lw=0.8)
        axes.set_title(says.replace(" has lower", "\nhas lower"))
        axes.set(xlabel="seeds at the look", xticks=[3, 5, 8, 11], ylim=(-4, 4))
    figure.supylabel("difference from erm, points", fontsize=9)
    return figure


def machines() -> Figure:
    """Draw the processes and places of a launch, and what passes between them."""
    figure, axes = _diagram(7.4, 3.3)
    _box(axes, "driver", "mixsweep run\nplans runs, writes the report", (0.2, 1.25, 2.0, 0.8), BLUE)
    _box(
        axes, "head", "Ray: starts runs where\nCPUs or GPUs are free", (2.9, 1.25, 1.8, 0.8), ORANGE
    )
    for n, low in enumerate((2.25, 1.25, 0.25)):
        _box(axes, f"worker {n + 1}", "trains one run", (5.4, low, 1.5, 0.8), GREEN)
        _arrow(axes, (4.7, 1.65), (5.4, low + 0.4))
        _arrow(axes, (6.9, low + 0.4), (7.4, low + 0.4))
    _box(
        axes,
        "store",
        "records, states\nand predictions\n= the results",
        (7.4, 0.25, 1.4, 2.8),
        GREY,
    )
    _arrow(axes, (2.2, 1.65), (2.9, 1.65), "runs")
    _box(axes, "MLflow", "a copy, to look at", (0.2, 2.45, 2.0, 0.6), GREY)
    _box(axes, "Optuna", "proposes points of a search", (0.2, 0.25, 2.0, 0.6), GREY)
    _arrow(axes, (1.2, 2.05), (1.2, 2.45))
    _arrow(axes, (1.2, 0.85), (1.2, 1.25))
    axes.text(
        3.8, 3.12, "each node of a cluster reads and writes the same store", ha="center", fontsize=8
    )
    axes.set(xlim=(0, 9), ylim=(0.05, 3.35))
    return figure


def training_loop() -> Figure:
    """Draw the steps of an epoch and the method of a plugin that each of them calls."""
    figure, axes = _diagram(7.4, 3.5)
    for up, text in (
        (3.3, "once per epoch"),
        (2.0, "for each batch"),
        (0.85, "after an evaluation"),
    ):
        axes.text(1.05, up, text, fontsize=8, color="#555555")
    rows = {
        2.45: {"Law": "draw: weights lam", "Operation": "draw: boxes, masks"},
        1.15: {
            "Augmentation": "changes images",
            "Operation": "mix: mixed images,\nlabel weights",
            "Objective": "on: calls the model,\nreturns the loss",
            "Model": "logits",
            "Optimizer": "a step",
        },
        0.0: {"Probe": "measure: numbers", "record": "metrics of the epoch"},
    }
    for low, boxes in rows.items():
        for column, (title, text) in enumerate(boxes.items()):
            colour = GREY if title == "record" else GREEN
            _box(axes, title, text, (0.15 + 1.78 * column, low, 1.55, 0.75), colour)
    for low, count in ((2.45, 2), (1.15, 5), (0.0, 2)):
        for column in range(count - 1):
            _arrow(axes, (1.7 + 1.78 * column, low + 0.37), (1.93 + 1.78 * column, low + 0.37))
    _arrow(axes, (0.92, 2.45), (0.92, 1.9))
    _arrow(axes, (0.92, 1.15), (0.92, 0.75))
    axes.set(xlim=(0, 9), ylim=(-0.1, 3.5))
    return figure


def choices() -> Figure:
    """Draw which seeds and images choose a winner, and which judge it."""
    figure, axes = _diagram(7.4, 1.7)
    _box(axes, "search", "points at the seeds 0, 1\ntraining images", (0.2, 0.5, 2.2, 0.9), BLUE)
    _box(axes, "choice", "lowest mean error of\nvalidation images", (3.1, 0.5, 2.2, 0.9), ORANGE)
    _box(
        axes,
        "confirmation",
        "winner and arms at new seeds,\njudged on test images",
        (6.0, 0.5, 2.7, 0.9),
        GREEN,
    )
    _arrow(axes, (2.4, 0.95), (3.1, 0.95))
    _arrow(axes, (5.3, 0.95), (6.0, 0.95))
    axes.text(
        4.4, 0.2, "test images are loaded only here \u2192", ha="left", fontsize=8, color=GREY
    )
    axes.set(xlim=(0, 9), ylim=(0, 1.6))
    return figure


def _diagram(width: float, height: float) -> tuple[Figure, Axes]:
    figure = Figure((width, height), layout="constrained")
    axes = figure.subplots()
    axes.axis("off")
    return figure, axes


def _box(
    axes: Axes, title: str, text: str, place: tuple[float, float, float, float], colour: str
) -> None:
    left, low, width, height = place
    axes.add_patch(
        mpl.patches.FancyBboxPatch(
            (left + 0.05, low + 0.05), width - 0.1, height - 0.1, boxstyle="round,pad=0.05",
            fc=FILLS[colour], ec=colour,
        )
    )  # fmt: skip
    lines = text.count("\n") + 1
    middle, up = left + width / 2, low + height / 2
    axes.text(middle, up + 0.09 * lines, title, ha="center", va="bottom", weight="bold", fontsize=8)
    axes.text(middle, up + 0.05 * lines, text, ha="center", va="top", fontsize=7)


def _arrow(
    axes: Axes, start: tuple[float, float], end: tuple[float, float], text: str = ""
) -> None:
    axes.annotate("", end, start, arrowprops={"arrowstyle": "-|>", "color": "#444444", "lw": 1.1})
    if text:
        axes.text((start[0] + end[0]) / 2, start[1] + 0.1, text, ha="center", fontsize=7)


def _rows(study: str, name: str) -> list[dict[str, str]]:
    with (PUBLISHED / study / name).open(encoding="utf-8", newline="") as stream_:
        return list(csv.DictReader(stream_))


PICTURES: Mapping[str, Callable[[], Figure]] = {
    "operations": operations,
    "laws": laws,
    "schedules": schedules,
    "shared-epochs": shared_epochs,
    "pairing": pairing,
    "search-history": search_history,
    "search-seeds": choices,
    "planned-looks": planned_looks,
    "machines": machines,
    "training-loop": training_loop,
}
"""The functions that draw the pictures, by the name of the file."""


def write_pictures(folder: Path, names: Iterable[str] = PICTURES) -> None:
    """Write the named pictures as SVG files below a folder, which is made if it is not there."""
    folder.mkdir(parents=True, exist_ok=True)
    settings: dict[str, Any] = STYLE | {"svg.fonttype": "path"}
    for name in names:
        with mpl.rc_context(settings):
            figure = PICTURES[name]()
            figure.savefig(folder / f"{name}.svg", metadata={"Date": None, "Creator": None})


if __name__ == "__main__":
    write_pictures(Path(sys.argv[1]))
