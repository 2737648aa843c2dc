"""Modified images: the figure shows the images that a run trains on."""

from dataclasses import replace

import torch

from mixup_core.config.building import with_values
from mixup_core.images.config import TrainConfig
from reports.figures.modified_images import draw_modified_images, shown_images
from sweeps.reading.study_file import load_study
from sweeps.study.readouts import Averaged
from sweeps.study.study import Variant


def test_images_are_mixed_by_the_weights_of_the_run_and_views_are_stacked() -> None:
    config = with_values(
        TrainConfig(epochs=1, batch_size=20),
        {"data.name": "digits", "data.views": "concat", "mix.law": "midpoint"},
    )
    images, weights = shown_images(config, 4)
    assert images.shape == (4, 2, 8, 8)
    assert torch.equal(weights, torch.full((4,), 0.5))
    plain, own = shown_images(with_values(config, {"mix.law": "erm"}), 4)
    assert torch.equal(own, torch.ones(4))
    assert not torch.equal(plain, images)


def test_the_figure_has_a_row_for_each_arm_and_the_numbers_of_its_images() -> None:
    study = load_study("digits")
    same = {arm: arm for arm in study.arms}
    read = Variant(label="averaged weights", arms=same, readout=Averaged())
    figure = draw_modified_images(replace(study, variants=(read,)), count=3)
    assert figure.png.startswith(b"\x89PNG")
    frame = figure.frame
    assert dict(frame.groupby("arm").size()) == {"erm": 3, "midpoint": 3, "uniform": 3}
    assert set(frame[frame.arm == "midpoint"].lam) == {0.5}
