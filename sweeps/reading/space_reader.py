"""SpaceReader: from `search.space` of a study file to a checked space."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from mixup_core.problem import Config
from mixup_core.rules import RuleError, shown
from mixup_core.tree import REQUIRED, parsed, parts, spelled
from sweeps.reading.strict_yaml import REFUSED, At, Place, holds_refused
from sweeps.reading.study_keys import KINDS, EntryKeys
from sweeps.reading.tree_paths import Setting, Settings, TreePaths, above, stand_in
from sweeps.reading.typed_reader import TypedReader
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
        read: TypedReader,
        paths: TreePaths,
        unsearchable: Collection[str],
        given: Collection[str],
        configure: Configure,
    ) -> None:
        """Make a reader.

        Args:
            read: Reads the file, and collects faults.
            paths: Of the configuration.
            unsearchable: Those that decide what the objective means.
            given: Those in which the arms of the study differ from its base.
            configure: What the extremes of the space are tried with.
        """
        self._read = read
        self._paths = paths
        self._unsearchable = unsearchable
        self._given = given
        self._configure = configure
        self._fixed: dict[str, Setting] = {}
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
        found: list[Parameter] = []
        for path, entry in self._read.mapping(written, AT).items():
            at = (*AT, path)
            inside = [head for head in above(path) if head in written]
            if not self._read.is_path(self._paths, path, at) or not self._may_vary(path, at):
                continue
            if inside:
                field = path.rpartition(".")[2]
                self._read.report(at, f"{inside[0]} is in the space; write the {field} there")
            else:
                is_choice = path in self._paths.choices
                found += (self._choice if is_choice else self._parameter)(path, entry, at)
        for parameter in found:
            if is_grid and parameter.distribution.values() is None:
                text = "a grid needs `values`, a number of values, beside the bounds"
                self._read.report(self._at[parameter.path], text)
            if not is_grid and getattr(parameter.distribution, "num_values", None) is not None:
                self._read.report(self._at[parameter.path], "`values` is for sampler: grid")
        found = self._parents_first(found)
        if len(self._read.faults) == before:
            self._check_parents(found)
        return Space(parameters=tuple(found)) if len(self._read.faults) == before else None

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

    def _choice(self, path: str, entry: Any, at: At) -> list[Parameter]:
        """Return the parameters of a choice: its fields, or its tag and the fields under each."""
        part, entry = self._paths.leaves[path].part, self._read.mapping(entry, at)
        if (tag := _only_key(entry)) in part.options:
            found = self._fields(path, entry, at, {})
            self._fixed[path] = Setting(value=self._fixed_at(path, tag, found), at=at)
            return found
        choices = entry.get("categorical")
        if not isinstance(choices, list):
            if entry:
                tags = [f"{{{tag}: ...}}" for tag, kind in part.options.items() if parts(kind)]
                forms = " or ".join([*tags, "{categorical: [...]}"])
                self._read.report(at, f"expected {forms}, got {shown(entry)}")
            return []
        self._read.only(entry, ("categorical", "when"), at)
        chosen: list[Any] = []
        fields: list[Parameter] = []
        for number, choice in enumerate(choices):
            here = (*at, "categorical", number)
            if (tag := _only_key(choice)) in part.options:
                chosen.append(tag)
                fields += self._fields(path, choice, here, {path: (tag,)})
            elif self._value(path, choice, here) is not REFUSED:
                chosen.append(choice)
                if path in self._given and choice == getattr(part.default, "tag", None):
                    self._read.report(here, f"{choice} has nothing to search; make it an arm")
        when = self._when(entry, at)
        return [*self._listed(path, chosen, at, when), *fields]

    def _fields(self, path: str, choice: Any, at: At, when: When) -> list[Parameter]:
        """Return the fields of one kind of a choice; a value stands for the one choice there is."""
        ((tag, content),) = choice.items()
        kind, at = self._paths.leaves[path].part.options[tag], (*at, tag)
        names = [p.name for p in parts(kind) if f"{path}.{p.name}" in self._paths.leaves]
        if len(names) == 1 and not (isinstance(content, dict) and names[0] in content):
            return self._field(f"{path}.{names[0]}", content, at, when)
        content = self._read.mapping(content, at)
        self._read.only(content, names, at)
        return [
            parameter for name in content if name in names
            for parameter in self._field(f"{path}.{name}", content[name], (*at, name), when)
        ]  # fmt: skip

    def _field(self, path: str, entry: Any, at: At, when: When) -> list[Parameter]:
        if not self._may_vary(path, at):
            return []
        if not isinstance(entry, dict):
            return self._listed(path, [self._value(path, entry, at)], at, when)
        if "when" in entry:
            text = "exists wherever its choice does; it has no `when`"
            self._read.report((*at, "when"), text)
        return [replace(parameter, when=when) for parameter in self._parameter(path, entry, at)]

    def _fixed_at(self, path: str, tag: str, fields: Sequence[Parameter]) -> Any:
        """Return a choice of one kind, with stand-ins for what is searched in it."""
        choice = self._paths.leaves[path].part
        required = [part for part in parts(choice.options[tag]) if part.default is REQUIRED]
        extremes = {p.path.rpartition(".")[2]: p.distribution.extremes[0] for p in fields}
        for values in ({part.name: stand_in(part.hint) for part in required}, extremes):
            try:
                return parsed(choice.hint, {tag: values})
            except ValueError:
                continue
        return tag

    def _parameter(self, path: str, entry: Any, at: At) -> list[Parameter]:
        keys = self._read.value(EntryKeys, entry, at)
        if keys is REFUSED or holds_refused(entry):
            return []
        when, distribution = self._when(entry, at), keys.range()
        if "categorical" in entry:
            choices, here = entry["categorical"], (*at, "categorical")
            listed = self._read.listed(self._paths, path, choices, here, "choice")
            return self._listed(path, [setting.value for setting in listed], at, when)
        if distribution is None:
            self._read.report(at, f"expected one of {', '.join(KINDS)}, got {shown(entry)}")
            return []
        # Bounds are integers under a path of integers too; what lies between is not.
        low, high = distribution.low, distribution.high
        between = low + (high - low) / 2
        between += 1e-6 * max(1.0, abs(between)) * float(between).is_integer()
        probes = [low, high] if keys.int is not None else [low, high, between]
        if any(self._value(path, value, at) is REFUSED for value in probes):
            return []
        return self._found(path, distribution, at, when)

    def _listed(self, path: str, choices: Sequence[Any], at: At, when: When) -> list[Parameter]:
        """Return the parameter of a list of choices, none if they are wrong."""
        if REFUSED in choices:
            return []
        for choice in map(spelled, choices):
            if isinstance(choice, tuple | dict):
                text = "choices are numbers, text, booleans or null"
                self._read.report(at, f"{text}, got {shown(choice)}")
        try:
            return self._found(path, Categorical(choices=tuple(choices)), at, when)
        except RuleError as error:
            self._read.report(at, str(error))
            return []

    def _found(self, path: str, among: Distribution, at: At, when: When) -> list[Parameter]:
        self._at[path] = at
        return [Parameter(path=path, distribution=among, when=when)]

    def _may_vary(self, path: str, at: At) -> bool:
        if path in self._unsearchable:
            self._read.report(at, "cannot be searched: points would not compare")
        return path not in self._unsearchable

    def _value(self, path: str, value: Any, at: At) -> Any:
        return self._read.setting(self._paths, path, value, at).value

    def _when(self, entry: Mapping[str, Any], at: At) -> When:
        conditions: dict[str, tuple[Any, ...]] = {}
        for path, value in self._read.mapping(entry.get("when", {}), (*at, "when")).items():
            conditions[path] = tuple(value) if isinstance(value, list) else (value,)
            if not conditions[path]:
                self._read.report((*at, "when", path), f"needs at least one value of {path!r}")
        return conditions

    def _parents_first(self, parameters: list[Parameter]) -> list[Parameter]:
        """Return the parameters so that each comes after those it depends on, else as they were."""
        ordered: list[Parameter] = []
        waiting = list(parameters)
        while waiting:
            unmet = {parameter.path for parameter in waiting}
            ready = next((p for p in waiting if unmet.isdisjoint(p.when)), None)
            if ready is None:
                at = self._at[waiting[0].path]
                self._read.report(at, "depends on itself through `when`")
                break
            ordered.append(ready)
            waiting.remove(ready)
        return ordered

    def _check_parents(self, parameters: Sequence[Parameter]) -> None:
        known = {parameter.path: parameter for parameter in parameters}
        for parameter in parameters:
            at = self._at[parameter.path]
            for path, values in parameter.when.items():
                choices = getattr(getattr(known.get(path), "distribution", None), "choices", None)
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
