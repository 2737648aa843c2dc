"""Accuracy, balanced accuracy and AUROC against scikit-learn."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.metrics import accuracy_score, balanced_accuracy_score, roc_auc_score

from mixup_core.scores import accuracy, auroc, balanced_accuracy


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


def test_auroc_is_one_half_for_equal_probabilities() -> None:
    labels = np.array([0, 1, 0, 1])
    assert auroc(np.full((4, 2), 0.5), labels) == 0.5
    assert auroc(np.eye(2)[labels], labels) == 1
    assert auroc(np.eye(2)[1 - labels], labels) == 0
