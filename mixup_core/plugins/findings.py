"""Findings: results of the checks of a plugin, and the errors that checks raise."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from mixup_core.contracts import ContractError
from mixup_core.plugins.loading import message_of

Checks = Iterable[tuple[str, Callable[[], str | None]]]
"""Pairs of a statement about a plugin's entry, such as `it trains`, and a function that checks it.

The function raises `BrokenError` if the statement is wrong. Text that the function returns is
appended to the statement.
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """The result of one check of one model, law, dataset, ... that a plugin adds."""

    entry: str
    """Noun and name of the entry, for example `model tiny`."""
    contract: str
    """The statement that was checked, for example `it trains`."""
    broken: str = ""
    """Description of the fault; empty if the statement holds."""


class BrokenError(Exception):
    """Error: an entry of a plugin, such as a model, fails a check. The text describes the fault."""


class BaselessError(BrokenError):
    """Error: a plugin's entry fails a check that all its later checks need; they are skipped."""


def findings(entry: str, checks: Checks) -> Iterator[Finding]:
    """Run the checks of a plugin's entry, such as a law, and yield the result of each.

    If a check raises an exception, the entry has failed it. After a `BrokenError` the next check
    runs. After a `BaselessError` or another exception no more checks run, as they would fail, too.
    """
    for statement, check in checks:
        contract, broken, goes_on = statement, "", True
        try:
            contract += check() or ""
        except (BrokenError, ContractError) as error:
            broken, goes_on = str(error), type(error) is BrokenError
        except (Exception, SystemExit) as error:
            broken, goes_on = message_of(error) or f"{type(error).__name__}: {error}", False
        yield Finding(entry=entry, contract=contract, broken=broken)
        if not goes_on:
            return
