"""Baseline, references and claims of a study file, checked against its arms and metrics."""

from collections.abc import Mapping
from typing import Any

from mixup_core.problem import Problem
from sweeps.claims import Claim
from sweeps.reading.node_reader import NodeReader
from sweeps.reading.strict_yaml import REFUSED, Node
from sweeps.reading.study_keys import ClaimKeys, StudyKeys


class ClaimsReader:
    """Checks what is said of arms and metrics by name; what is wrong is reported and left out."""

    def __init__(
        self,
        read: NodeReader,
        problem: Problem,
        nodes: Mapping[str, Node],
        arms: Mapping[str, Any] | None,
    ) -> None:
        """Make a reader.

        Args:
            read: Reads nodes, and collects faults.
            problem: Of the study.
            nodes: Sections of the file by key.
            arms: By name; None if some could not be read, so that their names are unknown.
        """
        self._read = read
        self._problem = problem
        self._nodes = nodes
        self._arms = arms

    def baseline(self, keys: StudyKeys) -> str:
        """Return the arm that others are compared with: the one named, or the problem's own."""
        arms, default = self._arms or {}, self._problem.baseline
        if keys.baseline is not None:
            self._check_arm(self._nodes["baseline"], keys.baseline)
        return keys.baseline or (default if default in arms else next(iter(arms), ""))

    def references(self) -> dict[str, dict[str, float]]:
        """Return the numbers that a paper prints: arm to metric to number."""
        references: dict[str, dict[str, float]] = {}
        for arm, row in self._read.mapping(self._nodes.get("references")).items():
            self._check_arm(row, arm)
            values = references[arm] = {}
            for metric, node in self._read.mapping(row).items():
                self._check_metric(node, metric)
                value = self._read.value(float, node)
                values[metric] = 0.0 if value is REFUSED else value
        return references

    def claims(self) -> tuple[Claim, ...]:
        """Return what the sources say."""
        found = []
        nodes = self._nodes.get("claims")
        for node in () if nodes is None else self._read.filled(nodes, "claim"):
            keys = self._read.value(ClaimKeys, node)
            if keys is REFUSED:
                continue
            claim = keys.claim()
            found.append(claim)
            for side in (claim.left, claim.right):
                if isinstance(side, str):
                    self._check_arm(node, side)
            if claim.metric not in self._problem.predicted:
                self._check_metric(node, claim.metric)
            elif claim.readout is not None:
                told = f"{claim.metric} is of the last epoch, so it takes no readout of its own"
                self._read.report(node, told)
        return tuple(found)

    def _check_arm(self, node: Node, name: str) -> None:
        if self._arms is not None and name not in self._arms:
            hint = self._read.did_you_mean(name, self._arms)
            self._read.report(node, f"names no arm of the study, got {name!r}{hint}")

    def _check_metric(self, node: Node, name: str) -> None:
        """Report a metric that the problem does not know; `_averaged` is of averaged weights."""
        if name.removesuffix("_averaged") not in self._problem.metrics:
            known = [*self._problem.metrics, *self._problem.predicted]
            hint = self._read.did_you_mean(name, known)
            self._read.report(node, f"names no metric, got {name!r}{hint}")
