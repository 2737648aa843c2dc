import io
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.metrics import accuracy_score, balanced_accuracy_score, roc_auc_score

from mixup_core.predictions import (
    Predictions,
    PredictionsError,
    Split,
    accuracy,
    auroc,
    balanced_accuracy,
    images_digest,
)

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


def test_the_digest_of_images_depends_on_pixels_labels_and_shape() -> None:
    pixels, labels = np.zeros((4, 1, 2, 2), np.uint8), np.arange(4)
    digest = images_digest(pixels, labels)
    assert digest == images_digest(pixels.copy(), labels.copy())
    assert digest != images_digest(pixels + np.uint8(1), labels)
    assert digest != images_digest(pixels, labels[::-1].copy())
    assert digest != images_digest(pixels.reshape(4, 1, 1, 4), labels)


SOUND: Mapping[str, NDArray[np.generic]] = {
    "test/labels": np.array([0, 2], np.uint8), "test/images": np.zeros(16, np.uint8),
    "test/logits": np.zeros((2, 3), np.float32),
}  # fmt: skip
KINDS = [np.int64(3), np.zeros(2), np.zeros(2, complex), np.array(["1", "2"]),
         np.zeros((2, 1), np.uint8), np.zeros(2, "M8[s]"), np.zeros(2, [("a", "u1")])]  # fmt: skip
WRONG = {
    "test/labels": [*KINDS, np.array([-1, 0]), np.array([0, 3])],
    "test/images": KINDS,
    "test/logits<b>": [np.zeros((2, 3), np.float32)],
    "test/logits_averaged": [np.zeros((2, 4), np.float32)],
    "train/logits": [np.zeros((2, 3), np.float32)],
    "val/labels": [np.zeros(2, np.uint8)],
    "test/logits": [
        *KINDS, np.array([[0, 0, np.nan]] * 2, np.float32), np.array([[1e300, 0, 0]] * 2),
        np.zeros((2, 0), np.float32),
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "place"), [(n, i) for n, a in WRONG.items() for i in range(len(a))]
)
@pytest.mark.filterwarnings("ignore:overflow encountered in cast")
def test_arrays_of_another_type_shape_or_range_are_refused(name: str, place: int) -> None:
    def stored(arrays: Mapping[str, NDArray[np.generic]]) -> bytes:
        np.savez(buffer := io.BytesIO(), **arrays)  # type: ignore[arg-type]
        return buffer.getvalue()

    assert Predictions.from_bytes(stored(SOUND)).splits["test"].labels.tolist() == [0, 2]
    with pytest.raises(PredictionsError, match="damaged predictions"):
        Predictions.from_bytes(stored({**SOUND, name: WRONG[name][place]}))  # type: ignore[dict-item]


@pytest.mark.parametrize(
    "change", ["another name", "fewer classes", "other weights", "no images", "fewer labels"]
)
def test_splits_that_do_not_fit_each_other_are_refused(change: str) -> None:
    whole = _predictions()
    val = whole.splits["val"]
    changed = {
        "another name": {"other": val},
        "fewer classes": {"val": replace(val, labels=val.labels * 0, logits=_first(val, 2))},
        "other weights": {"val": replace(val, logits={"": val.logits[""]})},
        "fewer labels": {"val": replace(val, labels=val.labels[:-1])},
        "no images": {"val": replace(val, labels=val.labels[:0], logits=_first(val, 3, 0))},
    }[change]
    with pytest.raises(PredictionsError, match="damaged predictions"):
        Predictions.from_bytes(Predictions(splits={**whole.splits, **changed}).to_bytes())


def _first(split: Split, classes: int, images: int = 99) -> dict[str, NDArray[np.float32]]:
    return {name: of[:images, :classes] for name, of in split.logits.items()}


def drawn(classes: int, seed: int, digits: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return probabilities with ties, and labels of unequal frequency; every class occurs."""
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.ones(classes))
    labels = np.concatenate([np.arange(classes), rng.choice(classes, size=150, p=shares)])
    logits = np.eye(classes)[labels] + rng.normal(size=(len(labels), classes))
    return np.round(softmax(np.round(logits, digits), axis=1), 6), labels


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("digits", [0, 1, 9])
@pytest.mark.parametrize("classes", [2, 3, 10])
def test_accuracy_balanced_accuracy_and_auroc_match_scikit_learn(
    classes: int, digits: int, seed: int
) -> None:
    chances, labels = drawn(classes, seed, digits)
    if classes == 2:  # scikit-learn sees one class; its ties must be those of the other
        chances[:, 0] = np.round(1 - chances[:, 1], 6)
    predicted = chances.argmax(1)
    assert accuracy(chances, labels) == pytest.approx(accuracy_score(labels, predicted))
    expected = balanced_accuracy_score(labels, predicted)
    assert balanced_accuracy(chances, labels) == pytest.approx(expected)
    given = chances[:, 1] if classes == 2 else chances / chances.sum(1, keepdims=True)
    chances = chances if classes == 2 else given
    area = auroc(chances, labels)
    assert area == pytest.approx(roc_auc_score(labels, given, multi_class="ovr"))


def test_a_class_without_images_is_not_in_balanced_accuracy_and_leaves_auroc_undefined() -> None:
    chances = np.array([[0.6, 0.3, 0.1], [0.2, 0.7, 0.1], [0.5, 0.4, 0.1]])
    labels = np.array([0, 1, 1])
    assert balanced_accuracy(chances, labels) == 0.75
    assert auroc(chances, labels) is None
    assert auroc(chances[:, :1], np.zeros(3, np.int64)) is None
