"""Checks that every theory process has to pass."""

from typing import Any

from mixup_core.problem import problem_of
from mixup_core.records import EpochRecord


def finished(config: Any) -> list[EpochRecord]:
    return list(problem_of(config).start(config, None, "cpu"))


def last(config: Any) -> dict[str, float]:
    return dict(finished(config)[-1].metrics)


def assert_resumes_anywhere(config: Any) -> None:
    """Stop after each epoch, resume in a fresh process, and compare every bit."""
    problem = problem_of(config)
    unbroken = problem.start(config, None, "cpu")
    whole = list(unbroken)
    assert [record.epoch for record in whole] == list(range(config.epochs))
    for stop in range(config.epochs):
        first = problem.start(config, None, "cpu")
        steps = iter(first)
        for _ in range(stop):
            next(steps)
        second = problem.start(config, None, "cpu")
        second.load_bytes(first.to_bytes(), first.records)
        assert list(second) == whole[stop:]
        assert second.records == whole
        assert second.to_bytes() == unbroken.to_bytes()
