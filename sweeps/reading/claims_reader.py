"""ClaimsReader: read and check the parts of a study file that name arms and metrics."""

import math
from collections.abc import Collection, Mapping
from typing import Any

from mixup_core.problem import Config, Problem
from sweeps.reading.strict_yaml import REFUSED, At
from sweeps.reading.tree_reader import TreeReader
from sweeps.study.claims import Claim, StatedComparison
from sweeps.study.readouts import VALIDATION, ByValidation, ClaimReadout


class ClaimsReader:
    """Reads claims and reference numbers; reports every fault in them."""

    def __init__(
        self, read: TreeReader, problem: Problem, arms: Mapping[str, Config] | None
    ) -> None:
        """Create a reader.

        Args:
            read: Reads the file and collects faults.
            problem: The problem of the study.
            arms: All arms; None if one of them is faulty, and then names of arms are not checked.
        """
        self._read = read
        self._problem = problem
        self._arms = arms

    def check_arm(self, at: At, name: str) -> None:
        """Report a name that is not the name of an arm."""
        if self._arms is not None and name not in self._arms:
            text = f"names no arm of the study, got {name!r}"
            self._read.report(at, text, name, self._arms)

    def references(self, written: Any) -> dict[str, dict[str, float]]:
        """Return the reference numbers of a paper, by arm and metric."""
        for arm in self._read.mapping(written, ("references",)):
            self.check_arm(("references", arm), arm)
        return self._published("references", written)

    def untrained(self, written: Any) -> dict[str, dict[str, float]]:
        """Return the numbers of a paper for methods without an arm, by name and metric."""
        for name in self._read.mapping(written, ("untrained",)):
            if self._arms is not None and name in self._arms:
                self._read.report(("untrained", name), "names an arm; write it under references")
        return self._published("untrained", written)

    def _published(self, key: str, written: Any) -> dict[str, dict[str, float]]:
        published: dict[str, dict[str, float]] = {}
        for name, row in self._read.mapping(written, (key,)).items():
            at = (key, name)
            published[name] = {}
            for metric, number in self._read.mapping(row, at).items():
                self._check_metric((*at, metric), metric)
                published[name][metric] = self._read.value(float, number, (*at, metric))
        return published

    def claims(self, written: Any) -> tuple[Claim, ...]:
        """Return the claims of the study."""
        claims = []
        for at, words in self._read.filled(written, ("claims",), "claim").items():
            claim = self._read.value(Claim, words, at)
            if claim is not REFUSED:
                claims.append(claim)
                self._check(at, claim.that)
        return tuple(claims)

    def _check(self, at: At, that: StatedComparison) -> None:
        problem, arms = self._problem, self._arms or {}
        for arm in that.arms:
            self.check_arm(at, arm)
        if len({problem.population(arms[arm]) for arm in that.arms if arm in arms}) > 1:
            self._read.report(at, f"{' and '.join(that.arms)} are measured on different data")
        if that.metric not in problem.predicted:
            self._check_metric(at, that.metric)
        elif that.readout is not None:
            told = f"{that.metric} is of the last epoch, so it takes no readout of its own"
            self._read.report(at, told)
        if not that.together:
            self._check_bounds(at, that)
        # Other metrics may be measured more often than the headline.
        if that.readout is not None and that.metric in problem.headline:
            self.check_readout(at, that.readout, of=that.arms)
        if isinstance(that.readout, ByValidation) and that.metric.startswith("val/"):
            text = f"{that.readout} is chosen by the validation images, so {that.metric} would "
            self._read.report(at, f"{text}flatter every arm; claim it of another readout")

    def _check_bounds(self, at: At, that: StatedComparison) -> None:
        """Report a claim whose verdict the bounds of its metric decide, whatever the runs give."""
        metric = self._problem.metric(that.metric)
        least, most = metric.bounds
        if that.readout is not None:
            least, most = that.readout.bounds(least, most)
        verdict = that.settled(least, most)
        if verdict is None:
            return
        of = f", {that.readout}," if that.readout is not None else ""
        ends = [
            f"{word} {end * metric.scale:g}{' ' * bool(metric.unit)}{metric.unit}"
            for word, end in (("at least", least), ("at most", most)) if math.isfinite(end)
        ]  # fmt: skip
        says = {
            "holds": "cannot fail",
            "fails": "cannot hold",
            "undecided": "cannot hold: no interval lies wholly at a bound",
        }[verdict]
        self._read.report(
            at,
            f"the claim {says}, for {metric.label}{of} is {' and '.join(ends)} in every run; "
            "compare with another arm, or write a number inside the bounds or a margin",
        )

    def check_headline(self, at: At, metric: str) -> None:
        """Report a metric that is never recorded, or not at each evaluation of every arm."""
        if metric in self._problem.predicted:
            text = f"{metric} is computed from predictions, and no record holds it"
            self._read.report(at, f"{text}: name a recorded metric, such as test/accuracy")
            return
        if metric not in self._problem.metrics:
            self._check_metric(at, metric)
            return
        for name, config in (self._arms or {}).items():
            if not self._problem.measures(config, metric):
                self._read.report(at, f"arm {name} does not record {metric} at each evaluation")
                return

    def check_readout(
        self, at: At, readout: ClaimReadout, of: Collection[str] | None = None
    ) -> None:
        """Report the first arm whose runs are too short for a read-out, or lack its images.

        Args:
            at: Place of the read-out in the study file.
            readout: The read-out.
            of: Arms that it is for; None: all.
        """
        for name, config in (self._arms or {}).items():
            if of is not None and name not in of:
                continue
            if isinstance(readout, ByValidation):
                for metric, images in ((VALIDATION, "validation"), ("test/error", "test")):
                    if metric not in self._problem.metrics or not self._problem.measures(
                        config, metric
                    ):
                        text = f"{readout} needs {images} images, and {name} has none"
                        hint = "; set data.val_size or data.folds" if images == "validation" else ""
                        self._read.report(at, f"{text}{hint}")
                        return
            if (number := self._problem.cost.evaluations(config)) < readout.evaluations:
                text = f"{readout} needs {readout.evaluations}, and {name} has {number}"
                self._read.report(at, text)
                return

    def _check_metric(self, at: At, name: str) -> None:
        """Report a metric that the problem does not have; a suffix `_averaged` is ignored."""
        if name.removesuffix("_averaged") not in self._problem.metrics:
            known = [*self._problem.metrics, *self._problem.predicted]
            self._read.report(at, f"names no metric, got {name!r}", name, known)
