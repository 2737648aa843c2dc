"""Other processes: another process acts in the middle of an operation of this one."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest


def interrupted_at(
    monkeypatch: pytest.MonkeyPatch,
    owner: type,
    name: str,
    act: Callable[[], object],
    *,
    after: int,
) -> None:
    """Let another process act once, just before the n-th call of a method."""
    original, calls = getattr(owner, name), []

    def call(*args: Any, **kwargs: Any) -> Any:
        calls.append(name)
        if len(calls) == after + 1:
            act()
        return original(*args, **kwargs)

    monkeypatch.setattr(owner, name, call)


def turns(methods: Sequence[str], times: int) -> Iterator[tuple[str, str, int, Any]]:
    """Yield a key, a method, the number of a call, and a function that records the other process.

    A method is tried with increasing numbers until it is not called so often. In total, the other
    process must have acted at least four times.
    """
    keys, acted = (f"{number:04x}" for number in itertools.count()), []
    for method in methods:
        for after in range(times):
            key = next(keys)

            def noted(act: Callable[[], object], key: str = key) -> Callable[[], None]:
                return lambda: (acted.append(key), act())

            yield key, method, after, noted
            if key not in acted:
                break
    assert len(acted) >= 4
