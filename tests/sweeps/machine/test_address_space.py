"""The limit of the address space: messages name its value and a way out."""

import resource

import pytest

from sweeps.machine.address_space import spell_lack_of_memory, spell_limit, too_small_for_ray
from sweeps.running.retries import advice

LIMIT = 4_000_000 * 1024
UNMAPPED = "libtorch_cpu.so: failed to map segment from shared object"


@pytest.fixture
def _limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (LIMIT, LIMIT))


@pytest.mark.usefixtures("_limited")
def test_an_address_space_limit_is_reported_with_its_value_and_advice() -> None:
    limit = (
        "the address space of each process is limited to 4.1 GB (ulimit -v 4000000): start from a "
        "shell or job without this limit"
    )
    assert spell_limit() == limit
    assert advice().startswith(f"{limit}; or reduce batch_size")
    refusal = too_small_for_ray()
    assert refusal is not None
    assert limit in refusal
    assert "--engine inline" in refusal


@pytest.mark.usefixtures("_limited")
@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (MemoryError(), "MemoryError"),
        (ImportError(UNMAPPED), UNMAPPED),
        (OSError(12, "Cannot allocate memory"), "[Errno 12] Cannot allocate memory"),
    ],
)
def test_a_failed_allocation_is_explained_by_the_limit(error: Exception, reason: str) -> None:
    told = spell_lack_of_memory(error)
    assert told is not None
    assert told.startswith(f"this process lacks memory ({reason}); ")
    assert "ulimit -v 4000000" in told
    outer = RuntimeError("a library failed")
    outer.__cause__ = error
    assert spell_lack_of_memory(outer) == told
