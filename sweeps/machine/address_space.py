"""Address space: the limit on the memory that a process may map, as set by `ulimit -v`."""

from mixup_core.faults import fault_of

_RAY_NEEDS = 8 * 10**9
"""Address space, in bytes, that each process of Ray needs. With 6 GB, workers that have imported
torch fail; with 8 GB, they train."""


def limited_bytes() -> int | None:
    """Return the limit on the address space of this process, in bytes; None without a limit."""
    try:
        import resource
    except ImportError:  # no POSIX system
        return None
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if limit == resource.RLIM_INFINITY else limit


def spell_limit() -> str:
    """Return a sentence about the address space limit and how to remove it; "" without a limit."""
    limit = limited_bytes()
    if limit is None:
        return ""
    return (
        f"the address space of each process is limited to {limit / 1e9:.1f} GB (ulimit -v "
        f"{limit // 1024}): start from a shell or job without this limit"
    )


def too_small_for_ray() -> str | None:
    """Return a message if the limit on the address space is too low for Ray; None if it is not."""
    limit = limited_bytes()
    if limit is None or limit >= _RAY_NEEDS:
        return None
    return (
        f"each process of Ray needs {_RAY_NEEDS / 1e9:.0f} GB of address space, but "
        f"{spell_limit()}, or train with --engine inline, which needs less"
    )


def spell_lack_of_memory(error: BaseException) -> str | None:
    """Return a message for an error caused by a lack of memory; None for any other error."""
    cause: BaseException | None = error
    while cause is not None and not _is_of_memory(cause):
        cause = cause.__cause__ or cause.__context__
    if cause is None:
        return None
    reason = (str(cause).strip().splitlines() or [type(cause).__name__])[0]
    advice = spell_limit() or "end other programs, or use a machine with more memory"
    return f"this process lacks memory ({reason}); stored results are kept; {advice}"


def _is_of_memory(error: BaseException) -> bool:
    return fault_of(str(error) if isinstance(error, ImportError) else error) == "memory"
