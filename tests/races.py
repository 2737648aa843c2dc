"""Races: several processes try to get the same thing at the same moment, round after round."""

import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.synchronize import Barrier
from threading import BrokenBarrierError
from typing import TypeVar

from mixup_core.store.checkpoints import Store
from mixup_core.store.manifests import EpochFacts, Stage
from tests.mixup_core.store.stored_files import RECORDS, write

Got = TypeVar("Got")
Attempt = Callable[[str, int, int], Got]
"""Function of the URL of a store, the number of the round and that of the process."""

_PATIENCE = 50.0

_barrier: Barrier


def race(attempt: Attempt[Got], store: str, *, racers: int, rounds: int) -> list[tuple[Got, ...]]:
    """Return what each process got, by round; all attempts of a round start together."""
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(racers)
    with ProcessPoolExecutor(racers, context, _enter, (barrier,)) as pool:
        runs = [pool.submit(_run, attempt, store, racer, rounds) for racer in range(racers)]
        # The others wait in vain for a racer that failed; what it failed with is what happened.
        failed = [error for run in runs if (error := run.exception()) is not None]
        for error in sorted(failed, key=lambda error: isinstance(error, BrokenBarrierError)):
            raise error
        return list(zip(*(run.result() for run in runs), strict=True))


def write_stage(store: str, number: int, racer: int) -> tuple[int, int]:
    """Store a stage; return who wrote the stage that came back, and who wrote the stored one."""
    opened, key = Store(store), f"{number:08x}"
    written = _put(opened, key, racer)
    stored = opened.read(key)
    assert opened.states.read(stored) == bytes([int(stored.facts[0].seconds)]) * 100_000
    return int(written.facts[0].seconds), int(stored.facts[0].seconds)


def clear_what_others_store(store: str, number: int, racer: int) -> bool:
    """Store a stage, or remove leftovers of dead writers; return whether the stage is complete."""
    opened, key = Store(store), f"{number:08x}"
    if racer % 2:
        for _ in range(30):
            opened.clear_torn(key)
    else:
        _put(opened, key, 0)
    stored = opened.read(key)
    return bool(racer % 2) or (stored is not None and opened.states.read(stored) == bytes(100_000))


def _put(store: Store, key: str, racer: int) -> Stage:
    """Store a stage, whose seconds and state tell who wrote it."""
    facts = [EpochFacts(seconds=float(racer), stored_at_ms=1)] * len(RECORDS)
    return write(store, key, bytes([racer]) * 100_000, facts=facts)


def _enter(barrier: Barrier) -> None:
    global _barrier
    _barrier = barrier


def _run(attempt: Attempt[Got], store: str, racer: int, rounds: int) -> list[Got]:
    found = []
    try:
        for number in range(rounds):
            _barrier.wait(_PATIENCE)
            found.append(attempt(store, number, racer))
    except BaseException:
        _barrier.abort()
        raise
    return found
