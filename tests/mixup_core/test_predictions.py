import numpy as np
import pytest

from mixup_core.predictions import Predictions, PredictionsError, Split, images_digest

RNG = np.random.default_rng(0)


def _predictions(num_classes: int = 3) -> Predictions:
    splits = {
        name: Split(
            labels=np.arange(size) % num_classes,
            images=images_digest(np.zeros((size, 1, 2, 2), np.uint8), np.arange(size)),
            logits={
                weights: RNG.normal(size=(size, num_classes)).astype(np.float32)
                for weights in ("", "_averaged")
            },
        )
        for name, size in (("val", 5), ("test", 300))
    }
    return Predictions(splits=splits)


@pytest.mark.parametrize("num_classes", [3, 300])
def test_predictions_round_trip_and_equal_predictions_have_equal_bytes(num_classes: int) -> None:
    predictions = _predictions(num_classes)
    content = predictions.to_bytes()
    read = Predictions.from_bytes(content)
    assert read.to_bytes() == content
    assert list(read.splits) == ["val", "test"]
    for name, split in predictions.splits.items():
        assert read.splits[name].images == split.images
        assert read.splits[name].labels.dtype == np.int64
        np.testing.assert_array_equal(read.splits[name].labels, split.labels)
        for weights, logits in split.logits.items():
            np.testing.assert_array_equal(read.splits[name].logits[weights], logits)


@pytest.mark.parametrize("content", [b"", b"no archive", _predictions().to_bytes()[:-40]])
def test_damaged_bytes_are_refused(content: bytes) -> None:
    with pytest.raises(PredictionsError, match="damaged predictions"):
        Predictions.from_bytes(content)


def test_logits_with_a_wrong_number_of_images_are_refused() -> None:
    (name, split), *_ = _predictions().splits.items()
    short = Split(labels=split.labels[:-1], images=split.images, logits=split.logits)
    with pytest.raises(PredictionsError, match="logits must all be of shape"):
        Predictions.from_bytes(Predictions(splits={name: short}).to_bytes())


def test_the_digest_of_images_depends_on_pixels_labels_and_shape() -> None:
    pixels, labels = np.zeros((4, 1, 2, 2), np.uint8), np.arange(4)
    digest = images_digest(pixels, labels)
    assert digest == images_digest(pixels.copy(), labels.copy())
    assert digest != images_digest(pixels + np.uint8(1), labels)
    assert digest != images_digest(pixels, labels[::-1].copy())
    assert digest != images_digest(pixels.reshape(4, 1, 1, 4), labels)
