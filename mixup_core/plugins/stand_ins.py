"""Stand-ins: what tables need of a plugin's entries, stored as data, and entries made from it.

A launch stores the names, fields and metrics of the laws, models, ... of its plugins. A command
that only reads results makes entries from them, and so needs no code of the plugin. Such an entry
cannot train: its methods raise `PluginError`.
"""

import dataclasses
import json
import math
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import reduce
from operator import or_
from types import NoneType
from typing import Any, ClassVar, Literal, NoReturn, get_args, get_origin, get_type_hints

from mixup_core.arrays import np
from mixup_core.config.building import parsed
from mixup_core.config.catalogue import Origin, Register, add_all
from mixup_core.config.checked import Checked
from mixup_core.config.parts import REQUIRED, Part, members, parts, unmarked, words
from mixup_core.config.written_forms import flatten, nodes, spelled
from mixup_core.images.augmentations.augmentation import Augmentation
from mixup_core.images.choices.models import Model
from mixup_core.images.choices.optimizers import Optimizer
from mixup_core.images.data.facts import Dataset, DatasetInfo
from mixup_core.images.data.sets import DATASETS
from mixup_core.images.objectives.objective import Guided, Objective
from mixup_core.images.probes.probe import Probe
from mixup_core.laws import Law
from mixup_core.mixing.operation import Operation
from mixup_core.plugins.source import PluginError
from mixup_core.problem import PROBLEMS, Metric, Problem
from mixup_core.store.json_records import Fraction, Sha256, filled, record_of

_NAMES: dict[Any, str] = {bool: "bool", int: "int", float: "float", str: "text", NoneType: "null"}
_LEVELS = 201
"""Number of quantiles of a law that are stored; those between them are interpolated."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FieldFacts:
    """A field of a class: the types of its values, and its default."""

    name: str
    kinds: tuple[Literal["bool", "int", "float", "text", "null"], ...]
    is_list: bool = False
    is_required: bool = False
    default: Any = None


@dataclass(frozen=True, kw_only=True, slots=True)
class LawFacts:
    """Quantiles and caption of a law with certain values of its fields."""

    fields: Mapping[str, Any]
    quantiles: tuple[Fraction, ...]
    caption: str


@dataclass(frozen=True, kw_only=True, slots=True)
class EntryFacts:
    """Facts about a class, a dataset or a problem of a plugin that tables need."""

    noun: str
    name: str
    plugin: str
    digest: Sha256
    source: Sha256
    version: str = ""
    kind: str = ""
    """Name of the class; empty for a dataset."""
    fields: tuple[FieldFacts, ...] = ()
    metrics: Mapping[str, Metric] = dataclasses.field(default_factory=dict)
    constants: Mapping[str, bool | float | str | None] = dataclasses.field(default_factory=dict)
    """Class variables of the base class that the plugin's class sets, such as `must_not_mix`."""
    laws: tuple[LawFacts, ...] = ()
    info: DatasetInfo | None = None
    files: Mapping[str, Mapping[str, str]] = dataclasses.field(default_factory=dict)
    title: str = ""
    headline: tuple[str, ...] = ()
    facets: Mapping[str, Mapping[str, Any]] = dataclasses.field(default_factory=dict)
    """Settings of a problem, such as further columns of tables, by field and name."""

    @property
    def origin(self) -> Origin:
        """The plugin of the entry; keys of results depend on its digest."""
        return Origin(**{of.name: getattr(self, of.name) for of in dataclasses.fields(Origin)})


_present: dict[tuple[str, str], tuple[EntryFacts, Any]] = {}
"""Stand-ins in the registries of this process, by noun and name."""


def entry_facts(source: str, configs: Iterable[Any]) -> list[dict[str, Any]]:
    """Return the facts, as JSON, of each plugin entry that a study's text names.

    Entries that plain data cannot describe, such as a problem with functions, are left out.
    """
    of_plugins = configs if REGISTERS["law"].origins else ()  # a study may have 10,000 arms
    laws = [node for config in of_plugins for node in nodes(config) if isinstance(node, Law)]
    found = []
    for noun, register in REGISTERS.items():
        for name, origin in register.origins.items():
            if not _is_named(name, source):
                continue
            known = _present.get((noun, name))
            with suppress(TypeError, ValueError):
                facts = known[0] if known else _facts(noun, name, register[name], origin, laws)
                plain = json.loads(json.dumps(dataclasses.asdict(facts), allow_nan=False))
                found += [plain] if filled(EntryFacts, plain) else []
    return found


def put_in(listed: Iterable[Any]) -> None:
    """Register a stand-in for each entry, from facts as JSON, that is not registered already."""
    for plain in listed:
        facts = filled(EntryFacts, plain)
        if facts is None or facts.noun not in REGISTERS:
            continue
        register, key = REGISTERS[facts.noun], (facts.noun, facts.name)
        if key in _present and _present[key][0] != facts:
            take_out(facts.noun, facts.name)
        if facts.name in register:
            continue
        try:
            entry = _entry(facts)
            add_all([(register, entry)], [facts.origin])
        except (TypeError, ValueError, KeyError):
            continue  # the reader of the study names what is missing
        _present[key] = facts, entry


def take_out(noun: str, name: str) -> None:
    """Remove a stand-in, if there is one, because its plugin is loaded now."""
    if (noun, name) in _present:
        del _present[noun, name]
        REGISTERS[noun].remove(name)


def stand_ins_of(source: str) -> tuple[str, ...]:
    """Return the plugins that only stand-ins replace, of those that a study file names."""
    used = (of.plugin for (_, name), (of, _) in _present.items() if _is_named(name, source))
    return tuple(dict.fromkeys(used))


def _is_named(name: str, source: str) -> bool:
    return re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", source) is not None


def _facts(noun: str, name: str, entry: Any, origin: Origin, laws: Iterable[Law]) -> EntryFacts:
    """Return the facts about an entry; `TypeError` if plain data cannot describe it."""
    common: dict[str, Any] = {"noun": noun, "name": name, **dataclasses.asdict(origin)}
    if isinstance(entry, Dataset):
        files = {str(split): of for split, of in entry.files.items()}
        return EntryFacts(**common, info=entry.info, files=files)
    kind = entry.config if isinstance(entry, Problem) else entry
    base: Any = Guided if issubclass(kind, Guided) else BASES.get(noun)
    inherited = parts(base) if dataclasses.is_dataclass(base) else ()
    fields = tuple(_field_facts(part) for part in parts(kind) if part not in inherited)
    common |= {"kind": kind.__name__, "fields": fields}
    if isinstance(entry, Problem):
        if entry.data is not None or entry.teaching is not None:
            raise TypeError("functions find its data or its teacher")
        return EntryFacts(
            **common, metrics=entry.metrics, title=entry.title, headline=entry.headline,
            facets=_facets(entry),
        )  # fmt: skip
    own = {law: None for law in laws if type(law) is kind}
    return EntryFacts(
        **common,
        metrics=getattr(kind, "metrics", {}),
        constants={"is_guided": base is Guided}
        | {
            constant: getattr(kind, constant)
            for constant in _constants(base)
            if getattr(kind, constant, None) != getattr(base, constant, None)
        },
        laws=tuple(
            LawFacts(
                fields=flatten(law),
                quantiles=tuple(map(float, law.quantiles(_levels()))),
                caption=law.caption,
            )
            for law in own
        ),
    )


def _constants(base: Any) -> list[str]:
    hints = get_type_hints(base)
    named = [name for name, hint in hints.items() if ClassVar in (hint, get_origin(hint))]
    return [n for n in named if n not in {"catalogue", "tag", "name", "metrics", "packages"}]


def _field_facts(part: Part) -> FieldFacts:
    kinds, is_list = set[Any](), False
    for member in members(part.hint):
        inner = unmarked(member)
        if get_origin(inner) is tuple:
            inner, is_list = unmarked(get_args(inner)[0]), True
        kinds |= {type(word) for word in words(member)} or {inner}
    names = {_NAMES.get(kind) for kind in kinds}
    if None in names or (is_list and len(names - {"null"}) > 1):
        raise TypeError(f"{part.name} has values that are no plain data")
    is_required = part.default is REQUIRED
    return FieldFacts(
        name=part.name,
        kinds=tuple(sorted(names)),  # type: ignore[arg-type]
        is_list=is_list,
        is_required=is_required,
        default=None if is_required else spelled(part.default),
    )


def _facets(problem: Problem) -> dict[str, dict[str, Any]]:
    """Return the settings of a problem that differ from the defaults, by field and name."""
    found: dict[str, dict[str, Any]] = {}
    for field in dataclasses.fields(Problem):
        facet: Any = getattr(problem, field.name)
        if not dataclasses.is_dataclass(facet) or isinstance(facet, type):
            continue
        usual: Any = type(facet)()
        for setting in dataclasses.fields(facet):
            value = getattr(facet, setting.name)
            if value != getattr(usual, setting.name):
                found.setdefault(field.name, {})[setting.name] = value
    return found


def _entry(facts: EntryFacts) -> Any:
    if facts.info is not None:
        read: Any = _refusing(facts)
        return Dataset(name=facts.name, info=facts.info, files=facts.files, read=read)  # type: ignore[arg-type]
    fields = [_field(field) for field in facts.fields]
    if facts.noun == "problem":
        config = dataclasses.make_dataclass(
            facts.kind, fields, bases=(Checked,), namespace={"problem": facts.name},
            frozen=True, kw_only=True, slots=True,
        )  # fmt: skip
        return Problem(
            name=facts.name, title=facts.title, config=config, metrics=facts.metrics,
            process=f"{__name__}:start", headline=facts.headline, **_restored(facts),
        )  # fmt: skip
    base = Guided if facts.constants.get("is_guided") else BASES[facts.noun]
    known = set(_constants(base))
    namespace: dict[str, Any] = {name: _refusing(facts) for name in base.__abstractmethods__}
    namespace |= {name: value for name, value in facts.constants.items() if name in known}
    namespace["tag" if "tag" in get_type_hints(base) else "name"] = facts.name
    if "metrics" in get_type_hints(base):
        namespace["metrics"] = facts.metrics
    if facts.noun == "law":
        namespace |= _law_methods(facts)
    if facts.noun == "model":
        namespace["depth"] = math.inf  # the launch has compared it with the mixed layers
    return dataclasses.make_dataclass(
        facts.kind, fields, bases=(base,), namespace=namespace,
        frozen=True, kw_only=True, slots=True,
    )  # fmt: skip


def _field(facts: FieldFacts) -> tuple[str, Any, Any]:
    kinds = [kind for kind, name in _NAMES.items() if name in {*facts.kinds} - {"null"}]
    hint: Any = reduce(or_, kinds)
    hint = tuple[hint, ...] if facts.is_list else hint
    hint = hint | None if "null" in facts.kinds else hint
    default = REQUIRED if facts.is_required else parsed(hint, facts.default)
    return facts.name, hint, dataclasses.field(default=default)


def _law_methods(facts: EntryFacts) -> dict[str, Any]:
    """Return the methods of a law that tables and figures call."""
    known = {_key(law.fields): law for law in facts.laws if len(law.quantiles) == _LEVELS}
    refuse = _refusing(facts)

    def quantiles(self: Any, levels: Any) -> Any:
        law = known.get(_key(flatten(self)))
        return refuse() if law is None else np.interp(levels, _levels(), law.quantiles)

    def caption(self: Any) -> str:
        law = known.get(_key(flatten(self)))
        return f"the {facts.name} law" if law is None else law.caption

    checked = Checked.__post_init__  # without the check of quantiles
    return {"quantiles": quantiles, "caption": property(caption), "__post_init__": checked}


def _levels() -> Any:
    return np.linspace(0, 1, _LEVELS)


def _key(fields: Mapping[str, Any]) -> str:
    return json.dumps(fields, sort_keys=True)


def _restored(facts: EntryFacts) -> dict[str, Any]:
    """Return the parts of a problem that differ from the defaults."""
    kinds, found = get_type_hints(Problem), dict[str, Any]()
    for name, settings in facts.facets.items():
        hints = get_type_hints(kinds[name], include_extras=True)
        values = {key: record_of(hints[key], value) for key, value in settings.items()}
        found[name] = kinds[name](**values)
    return found


def _refusing(facts: EntryFacts) -> Any:
    def refuse(*_: Any, **__: Any) -> NoReturn:
        raise PluginError(
            f"plugin {facts.plugin}: the code of the {facts.noun} {facts.name} is needed here; add "
            f"--plugin {facts.plugin}"
        )

    return refuse


def start(*_: Any, **__: Any) -> NoReturn:
    """Refuse to start a run of a problem whose plugin is not loaded."""
    raise PluginError("the plugin of this problem is not loaded; add --plugin FILE")


BASES: Mapping[str, Any] = {
    base.catalogue.noun: base
    for base in (Model, Optimizer, Objective, Law, Operation, Augmentation, Probe)
}
"""Base classes of the classes that plugins can add, by noun."""

REGISTERS: Mapping[str, Register[Any]] = {noun: base.catalogue for noun, base in BASES.items()} | {
    register.noun: register for register in (DATASETS, PROBLEMS)
}
