"""What a study file says of arms and metrics by name: references and claims, checked."""

from collections.abc import Mapping
from typing import Any

from mixup_core.problem import Config, Problem
from sweeps.claims import Claim
from sweeps.reading.strict_yaml import REFUSED, At
from sweeps.reading.study_keys import ClaimKeys
from sweeps.reading.tree_reader import TreeReader

Arms = Mapping[str, Config] | None
"""All arms; None while one is wrong, and no name is judged."""


def check_arm(read: TreeReader, at: At, name: str, arms: Arms) -> None:
    """Report a name that is no arm's."""
    if arms is not None and name not in arms:
        read.report(at, f"names no arm of the study, got {name!r}", name, arms)


def read_references(
    read: TreeReader, written: Any, problem: Problem, arms: Arms
) -> dict[str, dict[str, float]]:
    """Return the numbers that a paper prints: arm to metric to number; faults are reported."""
    references: dict[str, dict[str, float]] = {}
    for arm, row in read.mapping(written, ("references",)).items():
        at = ("references", arm)
        check_arm(read, at, arm, arms)
        references[arm] = {}
        for metric, number in read.mapping(row, at).items():
            _check_metric(read, (*at, metric), metric, problem)
            references[arm][metric] = read.value(float, number, (*at, metric))
    return references


def read_claims(read: TreeReader, written: Any, problem: Problem, arms: Arms) -> tuple[Claim, ...]:
    """Return what the sources say; faults are reported."""
    claims = []
    for number, words in enumerate(read.filled(written, ("claims",), "claim")):
        at = ("claims", number)
        keys = read.value(ClaimKeys, words, at)
        if keys is REFUSED:
            continue
        claim = keys.claim()
        claims.append(claim)
        sides = [side for side in (claim.left, claim.right) if isinstance(side, str)]
        for side in sides:
            check_arm(read, at, side, arms)
        if len({problem.population(arms[side]) for side in sides if arms and side in arms}) > 1:
            read.report(at, f"{' and '.join(sides)} are measured on different data")
        if claim.metric not in problem.predicted:
            _check_metric(read, at, claim.metric, problem)
        elif claim.readout is not None:
            told = f"{claim.metric} is of the last epoch, so it takes no readout of its own"
            read.report(at, told)
    return tuple(claims)


def _check_metric(read: TreeReader, at: At, name: str, problem: Problem) -> None:
    """Report a metric that the problem does not know; `_averaged` is of averaged weights."""
    if name.removesuffix("_averaged") not in problem.metrics:
        known = [*problem.metrics, *problem.predicted]
        read.report(at, f"names no metric, got {name!r}", name, known)
