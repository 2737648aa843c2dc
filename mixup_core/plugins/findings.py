"""Findings: results of the checks of a plugin, and the errors that checks raise."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from mixup_core.plugins.loading import message_of

Checks = Iterable[tuple[str, Callable[[], str | None]]]
"""Pairs of a contract, as a statement, and the function that checks it.

The function raises BrokenError if the contract is broken. Text that it returns is appended to the
statement.
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """The result of one check of one entry of a plugin."""

    entry: str
    """Noun and name of the entry, for example `model tiny`."""
    contract: str
    """The contract that was checked, as a statement."""
    broken: str = ""
    """Description of the breach; empty if the contract holds."""


class BrokenError(Exception):
    """Error: an entry breaks a contract. The text says how."""


class BaselessError(BrokenError):
    """Error: an entry breaks a contract that all later checks rely on, so they are skipped."""


def findings(entry: str, checks: Checks) -> Iterator[Finding]:
    """Run the checks of a catalogue entry, such as a law, and yield the result of each.

    A check fails with `BrokenError`. Any other exception is a failure too, and ends the checks:
    later ones would raise it again.
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
