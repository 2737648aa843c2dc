"""FilterScores: statistics of r, the teacher's loss minus the student's, on mixed images."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from mixup_core.arrays import Tensor, functional, torch
from mixup_core.images.objectives.objective import Guided
from mixup_core.images.probes.probe import Planned, Probe, Subject
from mixup_core.problem import Metric

if TYPE_CHECKING:
    from mixup_core.images.epoch import Epoch

_REACH = 0.25
"""Largest distance of lam from 1/2 in the middle of its range."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FilterScores(Probe):
    """Statistics of r, the teacher's loss minus the student's, over all training images mixed once.

    The run needs a teacher. The statistics are:

        low_fraction      share of images with r <= 0
        el2n_correlation  rank correlation of r with EL2N, ||softmax - mixed label||_2
        middle_ratio      mean |r| of images with |lam - 1/2| < 1/4, over that of the others
        tail_ratio        99th percentile of |r| over its median; 3.82 for a Gaussian

    Source: slides on data valuation for mixup, which show r against EL2N and lam.

    Example:
        In a study file: `probes: [filter-scores]`, `objective: {filter: {teacher: erm}}`,
        `mix.law: {beta: 1}`.

        >>> from mixup_core.images.probes.filter_scores import FilterScores
        >>> for name in FilterScores().metrics:
        ...     print(name)
        filter/low_fraction
        filter/el2n_correlation
        filter/middle_ratio
        filter/tail_ratio
    """

    # Frozen: each `tag` and metric name in this file. After a change, stored results are not found
    # or get another meaning; tests/golden/test_keys.py fails.
    tag: ClassVar = "filter-scores"
    metrics: ClassVar = {
        "filter/low_fraction": Metric(label="mixed images with r <= 0", unit="%"),
        "filter/el2n_correlation": Metric(
            label="rank correlation between r and EL2N", least=-1.0, most=1.0, is_lower_better=False
        ),
        "filter/middle_ratio": Metric(
            label="ratio of mean |r|: lam near 1/2 to lam near 0 or 1",
            least=0.0,
            is_lower_better=False,
        ),
        "filter/tail_ratio": Metric(
            label="ratio of the 99th percentile of |r| to its median",
            least=0.0,
            is_lower_better=False,
        ),
    }

    def lacks(self, planned: Planned, metric: str) -> str | None:
        how = planned.how
        if not isinstance(planned.config.objective, Guided):
            return "the run has no teacher; set objective to filter"
        if not how.is_mixed:
            return f"nothing is mixed in epoch {planned.epoch}; set mix.law to a law that mixes"
        if metric == "filter/middle_ratio" and not 1e-9 < _share_in_the_middle(how) < 1 - 1e-9:
            return "it needs values of lam above and below a distance of 1/4 from 1/2; set mix.law"
        return None

    def measure(self, subject: Subject) -> dict[str, float]:
        assert subject.teacher is not None, "`lacks` needs an objective with a teacher"
        scores, distances, weights = [], [], []
        with torch.no_grad():
            for batch in subject.mixed():
                logits = batch.logits(subject.logits)
                behind = batch.losses(batch.logits(subject.teacher), subject.loss)
                scores.append((behind - batch.losses(logits, subject.loss)).double())
                classes, lam = logits.shape[1], batch.lam.double().unsqueeze(1)
                own, other = (
                    functional.one_hot(y, classes) for y in (batch.labels, batch.partner_labels)
                )
                target = lam * own + (1 - lam) * other
                distances.append((logits.double().softmax(1) - target).norm(dim=1))
                weights.append(lam.squeeze(1))
            found = self._measured(torch.cat(scores), torch.cat(distances), torch.cat(weights))
        return {name: value for name, value in found.items() if math.isfinite(value)}

    def _measured(self, scores: "Tensor", distances: "Tensor", lam: "Tensor") -> dict[str, float]:
        """Return the metrics, NaN if one is not defined. Values are copied from the device once."""
        size = scores.abs()
        is_middle = ((lam - 0.5).abs() < _REACH).double()
        middle = (size * is_middle).sum() / is_middle.sum()
        ends = (size * (1 - is_middle)).sum() / (1 - is_middle).sum()
        ranks = torch.stack([part.argsort().argsort().double() for part in (scores, distances)])
        levels = torch.quantile(size, torch.tensor([0.5, 0.99]).to(size))
        values = torch.stack(
            [
                (scores <= 0).double().mean(),
                torch.corrcoef(ranks)[0, 1],
                middle / ends,
                levels[1] / levels[0],
            ]
        ).tolist()
        return dict(zip(self.metrics, values, strict=True))


def _share_in_the_middle(how: "Epoch") -> float:
    """Return the probability that lam of a mixed image is near 1/2, if it is the label's weight."""
    low, high = math.nextafter(0.5 - _REACH, 1), math.nextafter(0.5 + _REACH, 0)
    first = how.label_law or how.law
    second = first if how.second is None else how.label_law or how.second_law or how.law
    shares = [law.moments_within(low, high)[0] for law in (first, second)]
    return how.probability * (shares[0] + how.second_probability * (shares[1] - shares[0]))
