"""RuleError, the error for values that break a rule, and how messages show values and times."""

import re
from collections.abc import Mapping, Sequence
from copy import copy
from datetime import UTC, datetime
from typing import Any

_IN_WORDS = re.compile(r"\b(must|needs?|cannot)\b")


class RuleError(ValueError):
    """Error: the values of some fields break a rule. The message has rule, values and a hint.

    A rule that is a formula is put into backticks (`epochs >= 1` must hold). A rule in words is a
    sentence with `must`, `need` or `cannot`, and appears in the message unchanged.
    """

    rule: str
    """The rule: a formula or a sentence."""
    values: Mapping[str, Any]
    """Values of the fields in the rule, by the dotted path of the field."""
    fields: tuple[str, ...]
    """Fields in `values` that can be the cause of the error, the most likely first."""

    def __init__(
        self, rule: str, values: Mapping[str, Any], *, fields: tuple[str, ...] = (), hint: str = ""
    ) -> None:
        """Create an error."""
        self.rule, self.values, self.hint = rule, dict(values), hint
        self.fields = fields or tuple(values)
        got = ", ".join(f"{name}={value!r}" for name, value in values.items())
        stated = rule if _IN_WORDS.search(rule) else f"`{rule}` must hold"
        found = f", got ({got})" if values else ""
        super().__init__(f"{stated}{found}{'; ' * bool(hint)}{hint}.")

    def __reduce__(self) -> tuple[Any, ...]:
        """Support pickling, so that the error can pass between processes."""
        return RuleError.__new__, (RuleError, *self.args), vars(self)

    def within(self, prefix: str) -> "RuleError":
        """Return this error, with its message, and a prefix (`mix.`) before the names of fields."""
        found = copy(self)
        found.values = {f"{prefix}{name}": value for name, value in self.values.items()}
        found.fields = tuple(f"{prefix}{name}" for name in self.fields)
        return found


def require(holds: bool, rule: str, node: Any, *fields: str, hint: str = "") -> None:
    """Raise a `RuleError` unless a rule on fields of an object holds."""
    if not holds:
        raise RuleError(rule, {name: getattr(node, name) for name in fields}, hint=hint)


def require_one(node: Any, first: str, second: str) -> None:
    """Raise a `RuleError` if two fields of an object that exclude each other are both given."""
    both = None not in {getattr(node, first), getattr(node, second)}
    require(not both, f"{first} and {second} must not both be given", node, first, second)


def require_order(node: Any, low: str, high: str) -> None:
    """Raise a `RuleError` unless an object's field named `low` is at most the one named `high`."""
    require(getattr(node, low) <= getattr(node, high), f"{low} <= {high}", node, low, high)


def shown(value: Any) -> str:
    """Return a value formatted for messages: `null`, `the boolean true`, `text 'x'`, `0.5`."""
    match value:
        case None:
            return "null"
        case bool():
            return f"the boolean {str(value).lower()}"
        case str():
            return f"text {value!r}"
        case int() | float():
            return repr(value)
        case _:
            text = str(value)
            return text if len(text) <= 60 else f"{text[:57]}..."


def spell_time(unix_ms: int | None, form: str = "%Y-%m-%d %H:%M UTC") -> str:
    """Return a Unix time in ms, in UTC; an empty text for None."""
    return "" if unix_ms is None else datetime.fromtimestamp(unix_ms / 1000, UTC).strftime(form)


def first_line(said: object) -> str:
    """Return the first line of an error's message, or the error's type if it has no message."""
    return (str(said).strip().splitlines() or [type(said).__name__])[0]


def listed(names: Sequence[str], most: int = 5) -> str:
    """Return names on one line for a message; of many names, the first `most` and a number."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(map(printable, names[:most])) + more


def printable(text: str) -> str:
    """Return a text on one line: control characters escaped, the middle of a long text cut out."""
    return escaped(text if len(text) <= 1000 else f"{text[:700]} ... {text[-200:]}")


def escaped(text: str) -> str:
    """Return a text on one line, with control characters escaped."""
    if text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode("ascii")
        for letter in text
    )
