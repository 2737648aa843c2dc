"""Parts: the fields of a configuration dataclass, and the dotted paths that accept a value."""

import dataclasses
import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin, get_type_hints

from mixup_core.config.catalogue import Origin, cached_until_growth, catalogue_of, kind_name
from mixup_core.config.limits import Among, Limit

REQUIRED: Final = dataclasses.MISSING
"""Marks a field without a default."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """Description of one field of a configuration dataclass, such as its type and default."""

    name: str
    hint: Any
    """Type of the field; for a choice, the union of its dataclasses."""
    default: Any
    """Default of the field; `REQUIRED` if it has none."""
    is_group: bool
    options: Mapping[str, type]
    """Dataclasses that the field can hold, by tag or name; empty unless the field is a choice."""
    is_named: bool
    """True if the dataclasses are selected by `name` inside their group, not by `tag`."""
    is_optional: bool
    """True if the field is a choice that may be None."""
    origins: Mapping[str, Origin]
    """Plugins that define names which the field accepts, by name."""
    noun: str
    """Word for a value of the field in messages, such as `model` (see `noun_of`)."""

    @property
    def kind_path(self) -> str:
        """Path of this field's tag or name in its dataclass: `law`, `optimizer.name`."""
        return f"{self.name}.name" if self.is_named else self.name


@dataclass(frozen=True, kw_only=True, slots=True)
class Leaf:
    """A path, such as `optimizer.lr`, that accepts a value in a configuration, with its field."""

    path: str
    part: Part
    """The field; its type is a `Literal` of all names for a path such as `optimizer.name`."""
    owner: type
    """The dataclass to which the field belongs."""


@cached_until_growth
def parts(kind: Any) -> tuple[Part, ...]:
    """Return a description of each field of a dataclass, in the order of definition."""
    hints = get_type_hints(kind, include_extras=True)
    return tuple(_part(field, hints[field.name]) for field in dataclasses.fields(kind))


@cached_until_growth
def leaves(kind: type) -> Mapping[str, Leaf]:
    """Return the dotted paths of a configuration type that accept a value, each with its field.

    A field that several dataclasses of a choice have appears once, with the union of its types.
    """
    by_path: dict[str, Leaf] = {}
    for leaf in _leaves(kind, ""):
        first = by_path.setdefault(leaf.path, leaf)
        if first.part.hint != leaf.part.hint:
            either = dataclasses.replace(first.part, hint=Union[first.part.hint, leaf.part.hint])  # noqa: UP007
            by_path[leaf.path] = dataclasses.replace(first, part=either)
    return by_path


def places(kind: type) -> frozenset[str]:
    """Return all dotted paths of a configuration type, except groups that are no choice (`mix`).

    These are the paths that accept a value (`leaves`), and also the groups of choices by name
    (`optimizer`) and the fields of list items, without an index: `probes.every`.
    """
    paths = set(leaves(kind))
    for path, leaf in leaves(kind).items():
        if leaf.part.is_named:
            paths.add(path.removesuffix(".name"))
        lists = [whole for whole in members(unmarked(leaf.part.hint)) if get_origin(whole) is tuple]
        for kind in (kind for whole in lists for kind in members(get_args(whole)[0])):
            if dataclasses.is_dataclass(kind):
                paths.update(f"{path}.{field.name}" for field in dataclasses.fields(kind))
    return frozenset(paths)


def _leaves(kind: type, prefix: str) -> Iterator[Leaf]:
    for part in parts(kind):
        names = tuple(part.options)
        whole = dataclasses.replace(part, hint=Literal[names]) if part.is_named else part
        if not part.is_group:
            yield Leaf(path=f"{prefix}{part.kind_path}", part=whole, owner=kind)
        below = {part.name: part.hint} if part.is_group else part.options
        for inside in below.values():
            yield from _leaves(inside, f"{prefix}{part.name}.")


def words(hint: Any) -> tuple[Any, ...]:
    """Return the values that a type lists, with `Literal` or the limit `Among`; else nothing."""
    if get_origin(hint) is Literal:
        return get_args(hint)
    return tuple(name for mark in limits(hint) if isinstance(mark, Among) for name in mark.names)


def limits(hint: Any) -> tuple[Limit, ...]:
    """Return the limits, such as `Range(0, 1)`, in the `Annotated` marks of a type."""
    return tuple(mark for mark in get_args(hint) if isinstance(mark, Limit))


def unmarked(hint: Any) -> Any:
    """Return a type without its `Annotated` marks."""
    return get_args(hint)[0] if get_origin(hint) is Annotated else hint


def members(hint: Any) -> tuple[Any, ...]:
    """Return the types in a union, the classes in a base class's catalogue, or the type itself."""
    if get_origin(hint) in {Union, types.UnionType}:
        return tuple(kind for member in get_args(hint) for kind in members(member))
    if (catalogue := catalogue_of(hint)) is None:
        return (hint,)
    assert catalogue, f"the catalogue of {hint.__qualname__} is empty: import its package first"
    return tuple(catalogue.values())


def noun_of(hint: Any) -> str:
    """Return `Register.noun` of the registry of a field's values, such as `model`; else `""`."""
    is_union = get_origin(hint) in {Union, types.UnionType}
    for kind in get_args(hint) if is_union else (hint,):
        registers = [mark.names for mark in limits(kind) if isinstance(mark, Among)]
        for owner in (catalogue_of(kind), *registers):
            if noun := getattr(owner, "noun", ""):
                return str(noun)
    return ""


def _part(field: "dataclasses.Field[Any]", hint: Any) -> Part:
    default = field.default
    if field.default_factory is not dataclasses.MISSING:
        default = field.default_factory()
    kinds: list[Any] = [member for member in members(hint) if dataclasses.is_dataclass(member)]
    others = [member for member in members(hint) if member not in {*kinds, type(None)}]
    options = {} if others else {kind_name(kind): kind for kind in kinds}
    options = {} if "" in options else options
    return Part(
        name=field.name,
        hint=hint,
        default=default,
        is_group=hint in kinds and not options,
        options=options,
        is_named=bool(options) and not any(hasattr(kind, "tag") for kind in kinds),
        is_optional=bool(options) and type(None) in members(hint),
        origins={
            name: origin
            for member in members(hint)
            for mark in limits(member)
            for name, origin in getattr(getattr(mark, "names", None), "origins", {}).items()
        },
        noun=noun_of(hint),
    )
