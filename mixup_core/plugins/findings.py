"""Findings: what the checks of a plugin find, and how a check says that a contract is broken."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from mixup_core.plugins.loading import message_of

Checks = Iterable[tuple[str, Callable[[], str | None]]]
"""Contracts, each as a statement, with the function that checks it. What the function returns is
added to the statement."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """The result of one check of one entry."""

    entry: str
    """`model tiny`."""
    contract: str
    """The contract that was checked, as a statement."""
    broken: str = ""
    """Description of the breach; empty if the contract holds."""


class BrokenError(Exception):
    """A contract is broken; the text says how."""


class BaselessError(BrokenError):
    """A contract is broken on which those after it rest, so that they are not checked."""


def findings(entry: str, checks: Checks) -> Iterator[Finding]:
    """Yield the result of each check of an entry.

    An exception of the plugin breaks a contract and ends the checks: the next would meet it too.
    """
    for statement, check in checks:
        contract, broken, goes_on = statement, "", True
        try:
            contract += check() or ""
        except BrokenError as error:
            broken, goes_on = str(error), not isinstance(error, BaselessError)
        except (Exception, SystemExit) as error:
            broken, goes_on = message_of(error) or f"{type(error).__name__}: {error}", False
        yield Finding(entry=entry, contract=contract, broken=broken)
        if not goes_on:
            return
