"""The dotted paths of TrainConfig: what each accepts, and how values under them are joined."""

import difflib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, get_args

from pydantic import ConfigDict, TypeAdapter

from mixup_core.images.config import TrainConfig
from mixup_core.images.problem import IMAGES
from mixup_core.laws import Law
from mixup_core.rules import RuleError
from mixup_core.tree import Leaf, SpellingError, built, leaves, parsed
from sweeps.reading.strict_yaml import REFUSED, Place


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


RESERVED: Final = IMAGES.reserved
"""Paths of TrainConfig that are filled in for the user, and what to tell one who sets them."""

TYPES: Final[Mapping[str, Leaf]] = {
    path: leaf for path, leaf in leaves(TrainConfig).items() if path not in RESERVED
}
"""Dotted path to what it holds, for every value that a study file may give."""

LAW_PATHS: Final = tuple(p for p, leaf in TYPES.items() if leaf.options and not leaf.is_named)

ALPHA_PATHS: Final[Mapping[str, str]] = {f"{path}.alpha": path for path in LAW_PATHS}
"""Path of a Beta law's alpha to the path of the law."""

GROUPS: Final = frozenset(path.rpartition(".")[0] for path in TYPES) - {"", *LAW_PATHS}

REQUIRED: Final = ("epochs", "batch_size")
"""Paths without a default."""

_STAND_INS: Final = {"epochs": 1, "batch_size": 1}


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
        path: A key of `TYPES`.
        value: Plain data as a study file gives it; a law in its spelling.

    Raises:
        PathError: If the type is wrong: a boolean is no number, a fraction no integer, text no
            number.
        RuleError: If a law is out of range.
    """
    try:
        return parsed(TYPES[path].hint, value)
    except SpellingError as error:
        hint = did_you_mean(str(value), error.names) if isinstance(value, str) else ""
        raise PathError(f"{error}{hint}") from None


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
    faults: list[Fault] = []
    gone = {path for path, value in values.items() if value is REFUSED}
    gone |= {path for path in REQUIRED if path not in values}
    while True:
        kept = {path: value for path, value in values.items() if not _is_gone(path, gone)}
        try:
            config = built(TrainConfig, _STAND_INS | kept)
        except RuleError as error:
            fault = Fault(paths=error.fields, text=str(error))
            if gone.isdisjoint(fault.paths):
                faults.append(fault)
            if gone.issuperset(fault.paths):
                return None, frozenset(gone), tuple(faults)
            gone |= set(fault.paths)
        else:
            return config, frozenset(gone), tuple(faults)


def _is_gone(path: str, gone: Collection[str]) -> bool:
    return path in gone or any(path.startswith(f"{law}.") for law in gone if law in LAW_PATHS)


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
    return TYPES[path].owner.__name__, path.rpartition(".")[2]
