"""The dotted paths of TrainConfig: what each accepts, and how values under them are joined."""

import dataclasses
import difflib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args, get_origin, get_type_hints

from pydantic import ConfigDict, TypeAdapter, ValidationError

from mixup_core.images.config import TrainConfig
from mixup_core.laws import Beta, Erm, Law
from mixup_core.tree import parsed, spelled
from sweeps.reading.strict_yaml import REFUSED, Place, spell


@dataclass(frozen=True, kw_only=True, slots=True)
class Fault:
    """A rule that a configuration breaks."""

    paths: tuple[str, ...]
    """The dotted paths that the rule reads, the one most likely wrong first."""
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Setting:
    """A value given under a path of TrainConfig, and where."""

    value: Any
    """As TrainConfig holds it; `REFUSED` if it was reported."""
    place: Place
    where: str
    """Dotted path inside the study file."""


Settings = Mapping[str, Setting]
"""Settings by their dotted path."""


class PathError(Exception):
    """A key that names no value of a configuration, or a value of the wrong type."""


RESERVED: Final = {
    "seed": "is not set in a study file; give `seeds`",
    "data.digest": "is not set in a study file; it is computed from the folder",
}
"""Paths of TrainConfig that are filled in for the user, and what to tell one who sets them."""


def _types(part: type, prefix: str = "") -> dict[str, Any]:
    types: dict[str, Any] = {}
    for name, hint in get_type_hints(part).items():
        if dataclasses.is_dataclass(hint):
            assert isinstance(hint, type)
            types |= _types(hint, f"{prefix}{name}.")
        else:
            types[f"{prefix}{name}"] = hint
    return {path: hint for path, hint in types.items() if path not in RESERVED}


TYPES: Final[Mapping[str, Any]] = _types(TrainConfig)
"""Dotted path to type, for every value that a study file may give."""

LAW_PATHS: Final = tuple(path for path, hint in TYPES.items() if hint == Law)

ALPHA_PATHS: Final[Mapping[str, str]] = {f"{path}.alpha": path for path in LAW_PATHS}
"""Path of a Beta law's alpha to the path of the law."""

GROUPS: Final = frozenset(path.rpartition(".")[0] for path in TYPES) - {""}

_ADAPTERS: Final[Mapping[str, TypeAdapter[Any]]] = {
    path: TypeAdapter(hint) for path, hint in TYPES.items() if path not in LAW_PATHS
}

REQUIRED: Final = ("epochs", "batch_size")
"""Paths without a default."""

_BLANK: Final = TrainConfig(epochs=1, batch_size=1)


def check_path(path: str) -> None:
    """Check that a dotted path names one value, which may be a Beta law's alpha.

    Raises:
        PathError: If it does not; the text names the nearest path.
    """
    if path in TYPES or path in ALPHA_PATHS:
        return
    if path in RESERVED:
        raise PathError(RESERVED[path])
    if path in GROUPS:
        parts = ", ".join(known for known in TYPES if known.startswith(f"{path}."))
        raise PathError(f"names a group of values; give one of {parts}")
    raise PathError(f"unknown path{did_you_mean(path, [*TYPES, *ALPHA_PATHS])}")


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return ` (did you mean X?)` for the nearest known word, or nothing if none is near.

    A long path may be given by its last part alone: `lr` finds `optimizer.lr`.
    """
    known = list(known)
    nearest = difflib.get_close_matches(word, known, n=1)
    by_tail = {path.rpartition(".")[2]: path for path in reversed(known)}
    if not nearest:
        tails = difflib.get_close_matches(word.rpartition(".")[2], by_tail, n=1)
        nearest = [by_tail[tail] for tail in tails]
    return f" (did you mean {nearest[0]}?)" if nearest else ""


def parse_value(path: str, value: Any) -> Any:
    """Return the value under a path as TrainConfig holds it, types checked strictly.

    Args:
        path: A key of `TYPES` or `ALPHA_PATHS`.
        value: Plain data as a study file gives it; a law in its spelling.

    Raises:
        PathError: If the type is wrong: a boolean is no number, a fraction no integer, text no
            number.
        ValueError: If a law or its alpha is out of range.
    """
    if path in ALPHA_PATHS:
        return parsed(Law, {"beta": value}).alpha  # type: ignore[union-attr]
    if path in LAW_PATHS:
        return parsed(Law, value)
    try:
        # Strict JSON is the mode that takes a list for a tuple but no text for a number.
        return _ADAPTERS[path].validate_json(json.dumps(value), strict=True)
    except ValidationError:
        hint = TYPES[path]
        names = _literals(hint) if isinstance(value, str) else ()
        raise PathError(
            f"expected {_expected(hint)}, got {spell(value)}{did_you_mean(str(value), names)}"
        ) from None


def join(values: Mapping[str, Any]) -> tuple[TrainConfig | None, frozenset[str], tuple[Fault, ...]]:
    """Return the configuration made of parsed values by path, and every rule they break.

    A rule that fails is reported; then the values it read give way to their defaults, so that the
    other rules are checked too. What is said about values that already gave way is not reported.

    Args:
        values: Path to parsed value; `REFUSED` values and missing required ones count as broken.

    Returns:
        The configuration (None if the defaults themselves cannot stand), the paths that gave way,
        and the faults. The configuration is what the user asked for only if no path gave way.
    """
    given, faults, gone = _with_alphas(values)
    gone |= {path for path in REQUIRED if path not in given}
    gone |= {path for fault in faults for path in fault.paths}
    while True:
        try:
            kept = {path: value for path, value in given.items() if path not in gone}
            return _joined(_BLANK, kept, ""), frozenset(gone), tuple(faults)
        except _BrokenRuleError as error:
            fault = error.fault
            if gone.isdisjoint(fault.paths):
                faults.append(fault)
            if gone.issuperset(fault.paths):
                return None, frozenset(gone), tuple(faults)
            gone |= set(fault.paths)


def config_schemas() -> dict[str, Any]:
    """Return the JSON Schema of TrainConfig and its parts by class name, laws as files spell them.

    Descriptions are the docstrings of the classes and fields.
    """
    config = ConfigDict(extra="forbid", use_attribute_docstrings=True)
    schemas: dict[str, Any] = TypeAdapter(list[TrainConfig], config=config).json_schema()["$defs"]
    for law in get_args(Law):
        del schemas[law.__name__]
    schemas["Law"] = {
        "description": "erm, midpoint, or {beta: ALPHA} for lam ~ Beta(ALPHA, ALPHA).",
        "oneOf": [
            {"enum": ["erm", "midpoint"]},
            {
                "type": "object",
                "properties": {"beta": {"type": "number", "exclusiveMinimum": 0}},
                "required": ["beta"],
                "additionalProperties": False,
            },
        ],
    }
    for path in LAW_PATHS:
        group, name = _owner(path)
        field = schemas[group]["properties"][name]
        schemas[group]["properties"][name] = {
            "description": field["description"],
            "$ref": "#/$defs/Law",
        }
    for path in RESERVED:
        group, name = _owner(path)
        del schemas[group]["properties"][name]
    del schemas["TrainConfig"]["required"]  # arms and grid may give what base leaves out
    return schemas


def schema_of(path: str) -> dict[str, Any]:
    """Return the JSON Schema of one dotted path, as a reference into `config_schemas()`."""
    if path in ALPHA_PATHS:
        return {"type": "number", "exclusiveMinimum": 0}
    group, name = _owner(path)
    return {"$ref": f"#/$defs/{group}/properties/{name}"}


def _owner(path: str) -> tuple[str, str]:
    group, _, name = path.rpartition(".")
    part = getattr(_BLANK, group) if group else _BLANK
    return type(part).__name__, name


class _BrokenRuleError(Exception):
    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.text)
        self.fault = fault


def _joined(node: Any, values: Mapping[str, Any], prefix: str) -> Any:
    changes = {}
    for part in dataclasses.fields(node):
        path, old = f"{prefix}{part.name}", getattr(node, part.name)
        if path in GROUPS:
            changes[part.name] = _joined(old, values, f"{path}.")
        elif path in values:
            changes[part.name] = values[path]
    try:
        return dataclasses.replace(node, **changes)
    except ValueError as error:
        raise _BrokenRuleError(_fault(str(error), prefix)) from error


def _fault(text: str, prefix: str) -> Fault:
    """Return the fault that a ValueError of mixup_core tells: "... got (name=value, ...)."."""
    names = re.findall(r"([a-z][a-z_.]*)=", text.partition("got (")[2])
    paths = [path for name in names if (path := prefix + name) in TYPES]
    paths.sort(key=lambda path: path.endswith(".name"))  # the odd value, not the choice it misfits
    return Fault(
        paths=tuple(paths or (path for path in TYPES if path.startswith(prefix))), text=text
    )


def _with_alphas(values: Mapping[str, Any]) -> tuple[dict[str, Any], list[Fault], set[str]]:
    given = {path: value for path, value in values.items() if path not in ALPHA_PATHS}
    faults = []
    gone = {path for path, value in values.items() if value is REFUSED}
    for path, law_path in ALPHA_PATHS.items():
        law = given.get(law_path, Erm())
        if path not in values or law is REFUSED:
            continue
        if isinstance(law, Beta):
            alpha = values[path]
            given[law_path] = REFUSED if alpha is REFUSED else Beta(alpha=alpha)
        else:
            text = f"`{law_path} is a Beta law` must hold, got ({law_path}={spelled(law)!r})."
            faults.append(Fault(paths=(path, law_path), text=text))
        if given.get(law_path) is REFUSED:
            gone.add(law_path)
    return given, faults, gone


def _literals(hint: Any) -> tuple[str, ...]:
    return get_args(hint) if get_origin(hint) is Literal else ()


def _expected(hint: Any) -> str:
    names = {int: "an integer", float: "a number", bool: "true or false", str: "text"}
    if hint in names:
        return names[hint]
    if literals := _literals(hint):
        return f"one of {', '.join(literals)}"
    if get_origin(hint) is tuple:
        return "a list of integers"
    return " or ".join("null" if part is type(None) else _expected(part) for part in get_args(hint))
