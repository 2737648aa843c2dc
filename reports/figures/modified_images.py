"""Modified images: the first training images of each arm as its network sees them.

    python -m reports.figures.modified_images STUDY FILE.png

Each row shows the first images on which one arm trains at the first seed, with the training subset,
augmentation and mixing of this run. If a network gets an image and a second view (`data.views`) as
one input, the two are drawn side by side, and so are channels other than red, green and blue. The
images are read from this machine; no published report contains any.
"""

import argparse
from functools import partial
from pathlib import Path

import torch
from matplotlib.figure import Figure as Canvas
from torch import Tensor

from mixup_core.images.batches import Draws, batches
from mixup_core.images.config import TrainConfig
from mixup_core.images.data.datasets import load
from mixup_core.images.forward import gradient_norms
from mixup_core.images.training_state import TrainingState
from mixup_core.images.views import TrainingImages
from reports.figures.canvas import PANEL_INCHES, finished, styled
from reports.figures.canvas import Figure as Drawn
from reports.numbers.spelling import spell_csv
from sweeps.reading.study_file import load_study
from sweeps.study.study import Study

_CPU = torch.device("cpu")


def shown_images(config: TrainConfig, count: int) -> tuple[Tensor, Tensor]:
    """Return the first images of epoch 0, augmented and mixed, and the weight lam of each."""
    splits = load(config.data)
    images = TrainingImages(
        splits.seen_by(config.data), splits.info, config.data, config.seeds, _CPU
    )
    draws = Draws.for_training(config, 0, images)
    network = TrainingState.initial(config, splits.info, _CPU).network
    saliency = partial(gradient_norms, network, config.loss, config.precision)
    first = next(iter(batches(images, draws, saliency)))
    return first.mixed[:count], first.lam[:count]


def draw_modified_images(study: Study, count: int = 6) -> Drawn:
    """Return a figure with a row of images for each arm, augmented and mixed as in training."""
    study = study.primary()
    runs = {arm: study.runs_of(arm)[0].config for arm in study.arms}
    arms = {arm: c for arm, c in runs.items() if isinstance(c, TrainConfig)}
    if not arms:
        raise ValueError(f"{study.name}: only a study of images has images to show.")
    rows = []
    with styled():
        canvas = Canvas(figsize=(PANEL_INCHES * 2, 1.2 * len(arms)), layout="constrained")
        panels = canvas.subplots(len(arms), count, squeeze=False)
        for line, (arm, config) in zip(panels, arms.items(), strict=True):
            images, weights = shown_images(config, count)
            for column, (panel, image, lam) in enumerate(zip(line, images, weights, strict=False)):
                panel.imshow(_side_by_side(image).numpy(), cmap="gray", vmin=0, vmax=1)
                panel.set_title(f"{arm}\n" * (column == 0) + f"lam = {float(lam):.2f}", loc="left")
                panel.set_xticks([])
                panel.set_yticks([])
                values = {"mean": float(image.mean()), "sd": float(image.std())}
                rows.append({"arm": arm, "image": column, "lam": float(lam), **values})
        return finished(
            canvas,
            name="modified_images",
            title="Modified images",
            caption=f"{study.name}: the first images of the first epoch as the network sees them, "
            "at the first seed. lam is the weight of the image itself; 1 - lam is the weight of "
            "its partner.",
            numbers=spell_csv(rows),
        )


def _side_by_side(image: Tensor) -> Tensor:
    """Return an image for display, with values in [0, 1]."""
    channels = image.shape[0]
    parts = [image] if channels == 1 else torch.split(image, 3 if channels % 3 == 0 else 1)
    wide = torch.cat(list(parts), dim=2)
    low, high = wide.amin(), wide.amax()
    scaled = (wide - low) / (high - low).clamp(min=1e-6)
    return scaled[0] if scaled.shape[0] == 1 else scaled.permute(1, 2, 0)


def main() -> None:
    """Save a PNG file with the modified images of the study that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("study")
    parser.add_argument("file", type=Path)
    given = parser.parse_args()
    given.file.write_bytes(draw_modified_images(load_study(given.study)).png)


if __name__ == "__main__":
    main()
