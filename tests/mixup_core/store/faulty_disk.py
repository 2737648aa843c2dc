"""Faulty disk: system calls that fail, or during which the process dies."""

import os
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeVar

import pytest

from mixup_core.store.errors import StoreFullError

Subject = TypeVar("Subject")


class Killed(BaseException):
    """Simulates the death of the process."""


class FaultyDisk:
    """Counts system calls that change the disk, and makes one of them fail.

    With an error number, only that call fails, and a write is half done. Without one, the process
    dies at that call: no later call has any effect, so nothing can be cleaned up.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, fail_at: int, error: int | None) -> None:
        self.calls: list[str] = []
        self.fail_at = fail_at
        self.error = error
        for name in ("write", "fsync", "replace", "link", "unlink", "mkdir"):
            monkeypatch.setattr(os, name, self.guarded(name, getattr(os, name)))

    def guarded(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def guarded_call(*args: Any, **kwargs: Any) -> Any:
            if name == "unlink" and self.error is not None:
                return call(*args, **kwargs)
            self.calls.append(name)
            if len(self.calls) == self.fail_at and name == "write":
                call(args[0], args[1][: len(args[1]) // 2])
            if self.error is None and len(self.calls) >= self.fail_at:
                raise Killed
            if len(self.calls) == self.fail_at:
                assert self.error is not None
                raise OSError(self.error, os.strerror(self.error))
            return call(*args, **kwargs)

        return guarded_call


def calls_of(
    monkeypatch: pytest.MonkeyPatch, error: int | None, act: Callable[[], object]
) -> list[str]:
    with monkeypatch.context() as patch:
        faulty = FaultyDisk(patch, fail_at=10**9, error=error)
        act()
    return faulty.calls


def at_each_step(
    monkeypatch: pytest.MonkeyPatch,
    error: int | None,
    prepare: Callable[[str], Subject],
    act: Callable[[Subject], object],
) -> Iterator[tuple[Subject, BaseException]]:
    """Act on new subjects while the disk fails at each step in turn; yield each, and its error.

    `prepare` makes a subject of a name.
    """
    points = len(calls_of(monkeypatch, error, partial(act, prepare("unharmed"))))
    for point in range(1, points + 1):
        subject = prepare(str(point))
        with monkeypatch.context() as patch:
            FaultyDisk(patch, point, error)
            with pytest.raises((OSError, StoreFullError, Killed)) as caught:
                act(subject)
        yield subject, caught.value
