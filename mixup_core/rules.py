"""RuleError: values break a rule."""

import re
from collections.abc import Mapping
from typing import Any

_IN_WORDS = re.compile(r"\b(must|needs?|cannot)\b")


class RuleError(ValueError):
    """A rule does not hold. The message gives the rule, the values and a hint.

    A formula is put into code marks (`epochs >= 1` must hold); a rule in words is a sentence with
    `must` or `needs` and is used as it is.
    """

    rule: str
    """The rule: a formula or a sentence."""
    values: Mapping[str, Any]
    """Values of the fields in the rule, by dotted path."""
    fields: tuple[str, ...]
    """Names among `values` that can be the cause, the most likely first."""

    def __init__(
        self,
        rule: str,
        values: Mapping[str, Any],
        *,
        fields: tuple[str, ...] = (),
        hint: str = "",
    ) -> None:
        """Create an error.

        Args:
            rule: The rule that must hold.
            values: Values of the fields in the rule, by name; empty if the rule is enough.
            fields: The fields that can be the cause, the most likely first; all in order if empty.
            hint: Accepted values, or what to do.
        """
        self.rule, self.values, self.hint = rule, dict(values), hint
        self.fields = fields or tuple(values)
        got = ", ".join(f"{name}={value!r}" for name, value in values.items())
        stated = rule if _IN_WORDS.search(rule) else f"`{rule}` must hold"
        found = f", got ({got})" if values else ""
        super().__init__(f"{stated}{found}{'; ' * bool(hint)}{hint}.")

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the error with its parts, to pass it between processes."""
        return _again, (str(self), self.rule, self.values, self.fields, self.hint)

    def within(self, prefix: str) -> "RuleError":
        """Return the error with its fields below a prefix such as `mix.`; the message stays."""
        values = {f"{prefix}{name}": value for name, value in self.values.items()}
        fields = tuple(f"{prefix}{name}" for name in self.fields)
        return _again(str(self), self.rule, values, fields, self.hint)


def require(holds: bool, rule: str, node: Any, *fields: str, hint: str = "") -> None:
    """Check a rule on fields of a value.

    Args:
        holds: True if the rule holds.
        rule: As for `RuleError`.
        node: The value whose fields were read.
        fields: Names of the fields, the most likely cause first.
        hint: As for `RuleError`.

    Raises:
        RuleError: If it does not hold.
    """
    if not holds:
        raise RuleError(rule, {name: getattr(node, name) for name in fields}, hint=hint)


def _again(
    message: str, rule: str, values: Mapping[str, Any], fields: tuple[str, ...], hint: str
) -> RuleError:
    error = RuleError(rule, values, fields=fields, hint=hint)
    error.args = (message,)
    return error


def shown(value: Any) -> str:
    """Return a value as a message names it: `true`, `null`, `0.5`, `text 'x'`, `[1, 2]`."""
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


def printable(text: str) -> str:
    """Return the text on one line, invisible and control characters escaped, the middle cut."""
    if len(text) > 1000:
        text = f"{text[:700]} ... {text[-200:]}"
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode("ascii")
        for letter in text
    )
