"""is_linearly_separable: decides by a linear program whether a linear model separates points."""

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_array

from mixup_core.theory.two_layer.points import PatchSet

INFEASIBLE = 2
"""Status that `scipy.optimize.linprog` returns for a program without a solution."""


def is_linearly_separable(points: PatchSet) -> bool:
    """Return whether some linear model classifies all points correctly.

    A linear model `g_y(x) = sum_p <w_y, x^(p)>` depends only on the sum of a point's patches. A
    model without errors exists if and only if the inequalities `<w_y - w_s, sum of patches> >= 1`,
    for every point of a class y and every class s != y, have a solution. They are solved as a
    linear program; the 1 is no restriction, because weights can be scaled.

    Source: Chidambaram et al. 2023, arXiv:2210.13512, Proposition 4.4.
    """
    pooled, labels = points.pooled, points.labels
    classes = len(points.targets)
    features = pooled.shape[1]
    rivals = (labels[:, None] + np.arange(1, classes)) % classes
    rows = np.arange(rivals.size).reshape(rivals.shape)
    shape = (*rivals.shape, features)
    columns = np.arange(features)
    own = np.broadcast_to(labels[:, None, None] * features + columns, shape)
    rival = rivals[:, :, None] * features + columns
    entries = np.broadcast_to(pooled[:, None, :], shape)
    row = np.broadcast_to(rows[:, :, None], shape)
    margins = coo_array(
        (
            np.concatenate([-entries.ravel(), entries.ravel()]),
            (
                np.concatenate([row.ravel(), row.ravel()]),
                np.concatenate([own.ravel(), rival.ravel()]),
            ),
        ),
        shape=(rivals.size, classes * features),
    )
    found = linprog(
        np.zeros(classes * features),
        A_ub=margins.tocsr(),
        b_ub=np.full(rivals.size, -1.0),
        bounds=(None, None),
        method="highs",
    )
    if found.status not in {0, INFEASIBLE}:
        raise ArithmeticError(
            "SciPy's linear program for whether a linear model separates the training points ended "
            f"without an answer: {found.message}"
        )
    return bool(found.status == 0)
