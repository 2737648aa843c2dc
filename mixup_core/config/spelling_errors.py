"""Spelling errors: messages for values that are not written as their type requires."""

import dataclasses
from collections.abc import Collection, Mapping
from typing import Any, get_args, get_origin

from mixup_core.config.catalogue import kind_name
from mixup_core.config.parts import members, parts, unmarked, words
from mixup_core.config.short_forms import Under, short_form
from mixup_core.rules import shown


class SpellingError(ValueError):
    """Error: a value of a configuration has the wrong type, or a name in it does not exist."""

    def __init__(
        self,
        expected: str,
        value: object,
        names: Collection[str] = (),
        path: str = "",
        noun: str = "",
    ) -> None:
        super().__init__(f"{path}{': ' * bool(path)}expected {expected}, got {shown(value)}")
        self.expected = expected
        self.value = value
        self.names = tuple(names)
        """The known names, if a name was expected."""
        self.path = path
        """Path from the given value to the wrong part; empty if the whole value is wrong."""
        self.noun = noun
        """Noun of the registry that lacks the name, such as `model`; empty if there is none."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Support pickling, so that the error can pass between processes."""
        return type(self), (self.expected, self.value, self.names, self.path, self.noun)

    def within(self, path: str) -> "SpellingError":
        """Return a copy of this error with a prefix, such as a field's name, before its path."""
        below = f"{path}.{self.path}" if self.path else path
        return type(self)(self.expected, self.value, self.names, below, self.noun)


def expected(hint: Any) -> str:
    """Return a description of a type's values, for messages: `an integer or null`."""
    if known := words(hint):
        return f"one of {', '.join(map(str, known))}"
    hint = unmarked(hint)
    names = {int: "an integer", float: "a number", bool: "true or false", str: "text"}
    if hint in names:
        return names[hint]
    if get_origin(hint) is tuple:
        return f"a list of {_plural(get_args(hint)[0])}"
    if hint in members(hint) and dataclasses.is_dataclass(hint):
        return spelling_of(hint)
    spelled = ("null" if part is type(None) else expected(part) for part in members(hint))
    each = list(dict.fromkeys(spelled))
    return " or ".join([", ".join(each[:-1]), each[-1]] if each[:-1] else each)


def spellings_under(options: Mapping[str, Any], tag: str) -> str:
    """Return the notations that begin with a tag: `{beta: ALPHA} or {beta: {a: A, b: B}}`."""
    forms = {kind: short_form(kind) for kind in options.values()}
    under = [kind for kind, form in forms.items() if isinstance(form, Under) and form.tag == tag]
    return " or ".join(map(spelling_of, [options[tag], *under]))


def _plural(hint: Any) -> str:
    plain = {} if words(hint) else {int: "integers", float: "numbers", str: "texts"}
    return plain.get(unmarked(hint), f"({expected(hint)})")


def spelling_of(kind: Any) -> str:
    """Return the notation of a dataclass in study files, for messages: `erm`, `{beta: ALPHA}`."""
    fields = [part.name for part in parts(kind)]
    if form := short_form(kind):
        return form.shape(fields)
    mapping = ", ".join(f"{name}: {name.upper()}" for name in fields)
    if hasattr(kind, "tag"):
        if not fields:
            return str(kind.tag)
        return f"{{{kind.tag}: {fields[0].upper() if len(fields) == 1 else f'{{{mapping}}}'}}}"
    named = f"name: {kind.name}, " if kind_name(kind) else ""
    return f"{{{named}{mapping}}}"
