"""SpaceReader: from `search.space` of a study file to a checked space."""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any

from mixup_core.problem import Config
from mixup_core.rules import RuleError, shown
from mixup_core.tree.building import parsed
from mixup_core.tree.parts import parts
from mixup_core.tree.written_forms import spelled
from sweeps.reading.strict_yaml import REFUSED, At, Place
from sweeps.reading.study_keys import KINDS, EntryKeys
from sweeps.reading.tree_paths import Setting, Settings, above, stand_ins
from sweeps.reading.tree_reader import TreeReader
from sweeps.space import Categorical, Distribution, Parameter, Space

Configure = Callable[[Settings], Config | None]
"""Gives the configuration of some settings over the base of the study, None if there is none; it
reports what is wrong."""

AT: At = ("search", "space")
When = Mapping[str, tuple[Any, ...]]


class SpaceReader:
    """Turns what a space lists into parameters; what is wrong is reported and left out."""

    def __init__(
        self,
        read: TreeReader,
        unsearchable: Collection[str],
        given: Collection[str],
        configure: Configure,
    ) -> None:
        """Make a reader.

        Args:
            read: Reads configurations of the file, and collects faults.
            unsearchable: Paths that decide what the objective means.
            given: Those in which the arms of the study differ from its base.
            configure: What the extremes of the space are tried with.
        """
        self._read = read
        self._unsearchable = unsearchable
        self._given = given
        self._configure = configure
        self._fixed: dict[str, Setting] = {}
        self._found: list[Parameter] = []
        self._at: dict[str, At] = {}

    def space(self, written: Any, *, is_grid: bool) -> Space | None:
        """Return the space under the key `search.space`; None if there was a fault.

        Args:
            written: What stands there.
            is_grid: Whether every point of the space is to be tried.
        """
        before = len(self._read.faults)
        if written == {}:
            self._read.report(AT, "needs at least one path")
        for path, entry in self._read.mapping(written, AT).items():
            at = (*AT, path)
            if not self._read.is_path(path, at) or not self._may_vary(path, at):
                continue
            if inside := [head for head in above(path) if head in written]:
                field = path.rpartition(".")[2]
                self._read.report(at, f"{inside[0]} is in the space; write the {field} there")
            elif path in self._read.paths.choices:
                self._choice(path, entry, at)
            else:
                self._entry(path, entry, at, {})
        for parameter in self._found:
            if is_grid and parameter.distribution.values() is None:
                text = "a grid needs `values`, a number of values, beside the bounds"
                self._read.report(self._at[parameter.path], text)
            if not is_grid and getattr(parameter.distribution, "num_values", None) is not None:
                self._read.report(self._at[parameter.path], "`values` is for sampler: grid")
        ordered = self._parents_first()
        if len(self._read.faults) == before:
            self._check_parents()
        return Space(parameters=ordered) if len(self._read.faults) == before else None

    def base(self, space: Space) -> Config | None:
        """Return the configuration that points start from, if every corner of the space can be.

        A rule that is broken at many corners is reported at the first.
        """
        faults = self._read.faults
        broken: set[tuple[Place, str, str]] = set()
        for values in space.corners():
            before = len(faults)
            point = {path: Setting(value=v, at=self._at[path]) for path, v in values.items()}
            self._configure(self._fixed | point)
            found, faults[before:] = faults[before:], []
            for fault in found:
                rule = (fault.place, fault.path, fault.text.partition(" must hold")[0])
                faults += [] if rule in broken else [fault]
                broken.add(rule)
        return self._configure(self._fixed)

    def _choice(self, path: str, entry: Any, at: At) -> None:
        """Add what an entry searches of a choice: its kind, or the fields of one kind, or both."""
        kinds = self._read.paths.leaves[path].part.options
        if (kind := _only_key(entry)) in kinds:
            before = len(self._found)
            self._fields(path, entry, at, {})
            fixed = self._fixed_at(path, kind, self._found[before:])
            self._fixed[path] = Setting(value=fixed, at=at)
        elif isinstance(entry, dict) and "categorical" not in entry:
            forms = [f"{{{kind}: ...}}" for kind in kinds if self._names(path, kind)]
            text = f"expected {' or '.join([*forms, '{categorical: [...]}'])}"
            self._read.report(at, f"{text}, got {shown(entry)}")
        else:
            self._entry(path, entry, at, {}, kinds)

    def _entry(
        self, path: str, entry: Any, at: At, when: When, kinds: Collection[str] = ()
    ) -> None:
        """Add the parameter of an entry, then those of the fields of the kinds that it lists."""
        keys = self._read.value(EntryKeys, entry, at)
        if keys is REFUSED:
            return
        when, among = {**when, **self._when(entry, at)}, keys.range()
        if "categorical" in entry:
            self._categorical(path, entry["categorical"], (*at, "categorical"), when, kinds)
        elif among is None:
            self._read.report(at, f"expected one of {', '.join(KINDS)}, got {shown(entry)}")
        else:
            # Bounds are integers under a path of integers too; what lies between is not.
            between = among.low + (among.high - among.low) / 2
            between += 1e-6 * max(1.0, abs(between)) * float(between).is_integer()
            probes = [among.low, among.high, between][: 2 if keys.int is not None else 3]
            if all(self._value(path, value, at) is not REFUSED for value in probes):
                self._add(path, among, at, when)

    def _categorical(
        self, path: str, choices: Any, at: At, when: When, kinds: Collection[str]
    ) -> None:
        default = getattr(self._read.paths.leaves[path].part.default, "tag", None)
        chosen: list[Any] = []
        searched: list[tuple[Any, At]] = []
        for number, choice in enumerate(self._read.filled(choices, at, "choice")):
            here = (*at, number)
            if (kind := _only_key(choice)) in kinds:
                chosen.append(kind)
                searched.append((choice, here))
                continue
            chosen.append(self._value(path, choice, here))
            if kinds and path in self._given and choice == default:
                self._read.report(here, f"{choice} has nothing to search; make it an arm")
        self._listed(path, chosen, at[:-1], when)
        for choice, here in searched:
            self._fields(path, choice, here, {path: (_only_key(choice),)})

    def _fields(self, path: str, choice: Any, at: At, when: When) -> None:
        """Add the fields of one kind of a choice; a value stands for the one field there is."""
        ((kind, content),) = choice.items()
        names, at = self._names(path, kind), (*at, kind)
        if len(names) == 1 and not (isinstance(content, dict) and names[0] in content):
            self._field(f"{path}.{names[0]}", content, at, when)
            return
        for name, entry in self._read.mapping(content, at).items():
            if name in names:
                self._field(f"{path}.{name}", entry, (*at, name), when)
            else:
                self._read.report((*at, name), f"unknown key {name!r}", name, names)

    def _names(self, path: str, kind: str) -> list[str]:
        """Return the fields of a kind of a choice that may be given."""
        leaves = self._read.paths.leaves
        fields = parts(leaves[path].part.options[kind])
        return [part.name for part in fields if f"{path}.{part.name}" in leaves]

    def _field(self, path: str, entry: Any, at: At, when: When) -> None:
        if not self._may_vary(path, at):
            return
        if not isinstance(entry, dict):
            self._listed(path, [self._value(path, entry, at)], at, when)
            return
        if "when" in entry:
            text = "exists wherever its choice does; it has no `when`"
            self._read.report((*at, "when"), text)
        self._entry(path, entry, at, when)

    def _fixed_at(self, path: str, tag: str, fields: Sequence[Parameter]) -> Any:
        """Return a choice of one kind, with stand-ins for what is searched in it."""
        choice = self._read.paths.leaves[path].part
        extremes = {p.path.rpartition(".")[2]: p.distribution.extremes[0] for p in fields}
        for values in (stand_ins(choice.options[tag]), extremes):
            with suppress(ValueError):
                return parsed(choice.hint, {tag: values})
        return tag

    def _listed(self, path: str, choices: Sequence[Any], at: At, when: When) -> None:
        """Add the parameter of those choices that were not refused, none if they are wrong."""
        choices = [choice for choice in choices if choice is not REFUSED]
        for choice in map(spelled, choices):
            if isinstance(choice, tuple | dict):
                text = "choices are numbers, text, booleans or null"
                self._read.report(at, f"{text}, got {shown(choice)}")
        try:
            if choices:
                self._add(path, Categorical(choices=tuple(choices)), at, when)
        except RuleError as error:
            self._read.report(at, str(error))

    def _add(self, path: str, among: Distribution, at: At, when: When) -> None:
        self._at[path] = at
        self._found.append(Parameter(path=path, distribution=among, when=when))

    def _may_vary(self, path: str, at: At) -> bool:
        if path in self._unsearchable:
            self._read.report(at, "cannot be searched: points would not compare")
        return path not in self._unsearchable

    def _value(self, path: str, value: Any, at: At) -> Any:
        return self._read.setting(path, value, at).value

    def _when(self, entry: Mapping[str, Any], at: At) -> When:
        conditions: dict[str, tuple[Any, ...]] = {}
        for path, value in self._read.mapping(entry.get("when", {}), (*at, "when")).items():
            conditions[path] = tuple(value) if isinstance(value, list) else (value,)
            if not conditions[path]:
                self._read.report((*at, "when", path), f"needs at least one value of {path!r}")
        return conditions

    def _parents_first(self) -> tuple[Parameter, ...]:
        """Return the parameters so that each comes after those it depends on, else as they were."""
        ordered: list[Parameter] = []
        waiting = list(self._found)
        while waiting:
            unmet = {parameter.path for parameter in waiting}
            ready = next((p for p in waiting if unmet.isdisjoint(p.when)), None)
            if ready is None:
                text = "depends on itself through `when`"
                self._read.report(self._at[waiting[0].path], text)
                break
            ordered.append(ready)
            waiting.remove(ready)
        return tuple(ordered)

    def _check_parents(self) -> None:
        known = {parameter.path: parameter.distribution for parameter in self._found}
        for parameter in self._found:
            at = self._at[parameter.path]
            for path, values in parameter.when.items():
                choices = getattr(known.get(path), "choices", None)
                if path not in known:
                    text = f"when: its parent {path!r} is not in the space"
                    self._read.report(at, text, path, known)
                elif choices is None:
                    self._read.report(at, f"when: its parent {path!r} has no choices")
                elif any(value not in choices for value in values):
                    self._read.report(at, f"when: no choice of {path!r}, which has {choices}")


def _only_key(entry: Any) -> Any:
    """Return the key of a mapping of one thing; None of anything else."""
    return next(iter(entry)) if isinstance(entry, dict) and len(entry) == 1 else None
