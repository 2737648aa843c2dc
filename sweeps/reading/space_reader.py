"""SpaceReader: from `search.space` of a study file to a checked space."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from mixup_core.problem import Config
from mixup_core.rules import RuleError, shown
from mixup_core.tree import REQUIRED, default_at, parsed, parts, spelled
from sweeps.reading.node_reader import NodeReader
from sweeps.reading.strict_yaml import REFUSED, Node, Place, holds_refused, plain
from sweeps.reading.study_keys import KINDS, EntryKeys
from sweeps.reading.tree_paths import Setting, Settings, TreePaths, above, stand_in
from sweeps.space import Categorical, Distribution, Parameter, Space

Configure = Callable[[Settings], Config | None]
"""Gives the configuration of some settings over the base of the study, None if there is none; it
reports what is wrong."""

When = Mapping[str, tuple[Any, ...]]


class SpaceReader:
    """Turns the node of a space into parameters; what is wrong is reported and left out."""

    def __init__(
        self, read: NodeReader, paths: TreePaths, configure: Configure, given: Collection[str]
    ) -> None:
        """Make a reader.

        Args:
            read: Reads nodes, and collects faults.
            paths: Of the configuration.
            configure: What the extremes of the space are tried with.
            given: Paths in which the arms of the study differ from its base.
        """
        self._read = read
        self._paths = paths
        self._configure = configure
        self._given = given
        self._unsearchable: Collection[str] = ()
        self._fixed: dict[str, Setting] = {}
        self._nodes: dict[str, Node] = {}

    def space(self, node: Node, unsearchable: Collection[str], *, is_grid: bool) -> Space | None:
        """Return the space of a node; None if there was a fault.

        Args:
            node: Value of the key `search.space`.
            unsearchable: Paths that decide what the objective means.
            is_grid: Whether every point of the space is to be tried.
        """
        before = len(self._read.faults)
        self._unsearchable = unsearchable
        entries = self._read.mapping(node)
        if node.value == {}:
            self._read.report(node, "needs at least one path")
        found: list[Parameter] = []
        for path, child in entries.items():
            self._nodes[path] = child
            inside = [head for head in above(path) if head in entries]
            if not self._read.is_path(self._paths, path, child):
                continue
            if not self._may_vary(path, child):
                continue
            if inside:
                field = path.rpartition(".")[2]
                self._read.report(child, f"{inside[0]} is in the space; write the {field} there")
            else:
                is_choice = path in self._paths.choices
                found += self._choice(path, child) if is_choice else self._parameter(path, child)
        for parameter in found:
            if is_grid and parameter.distribution.values() is None:
                text = "a grid needs `values`, a number of values, beside the bounds"
                self._read.report(self._nodes[parameter.path], text)
            if not is_grid and getattr(parameter.distribution, "num_values", None) is not None:
                self._read.report(self._nodes[parameter.path], "`values` is for sampler: grid")
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
            point = {path: Setting(value=v, node=self._nodes[path]) for path, v in values.items()}
            self._configure(self._fixed | point)
            found, faults[before:] = faults[before:], []
            for fault in found:
                rule = (fault.place, fault.path, fault.text.partition(" must hold")[0])
                faults += [] if rule in broken else [fault]
                broken.add(rule)
        return self._configure(self._fixed)

    def _choice(self, path: str, node: Node) -> list[Parameter]:
        """Return the parameters of a choice: its fields, or its tag and the fields under each."""
        leaf, entry = self._paths.leaves[path], self._read.mapping(node)
        if len(entry) == 1 and (tag := next(iter(entry))) in leaf.options:
            found = self._fields(path, tag, entry[tag], {})
            self._fixed[path] = Setting(value=self._fixed_at(path, tag, found), node=node)
            return found
        choices = entry.get("categorical")
        if choices is None or not isinstance(choices.value, list):
            if entry:
                tags = [f"{{{tag}: ...}}" for tag, kind in leaf.options.items() if parts(kind)]
                forms = " or ".join([*tags, "{categorical: [...]}"])
                self._read.report(node, f"expected {forms}, got {shown(plain(node))}")
            return []
        self._read.only(entry, ("categorical", "when"))
        default = default_at(leaf.owner, path.rpartition(".")[2], {})
        chosen: list[Any] = []
        fields: list[Parameter] = []
        for child in choices.value:
            entry_of = child.value if isinstance(child.value, dict) else {}
            if len(entry_of) == 1 and (tag := next(iter(entry_of))) in leaf.options:
                chosen.append(tag)
                fields += self._fields(path, tag, entry_of[tag], {path: (tag,)})
            elif self._value(path, child) is not REFUSED:
                chosen.append(child.value)
                if path in self._given and child.value == default:
                    self._read.report(child, f"{child.value} has nothing to search; make it an arm")
        return [*self._listed(path, choices, chosen, self._when(entry.get("when"))), *fields]

    def _fields(self, path: str, tag: str, node: Node, when: When) -> list[Parameter]:
        """Return the fields of one kind of a choice; a value stands for the one choice there is."""
        kind = self._paths.leaves[path].options[tag]
        names = [p.name for p in parts(kind) if f"{path}.{p.name}" in self._paths.leaves]
        is_field = isinstance(node.value, dict) and not set(node.value).isdisjoint(names)
        is_alone = len(names) == 1 and not is_field
        given = {names[0]: node} if is_alone else self._read.mapping(node)
        self._read.only(given, names)
        found: list[Parameter] = []
        for field, child in ((f"{path}.{name}", given[name]) for name in given if name in names):
            self._nodes[field] = child
            if not self._may_vary(field, child):
                continue
            if not isinstance(child.value, dict):
                found += self._listed(field, child, [self._value(field, child)], when)
                continue
            if "when" in child.value:
                text = "exists wherever its choice does; it has no `when`"
                self._read.report(child.value["when"], text)
            found += [replace(parameter, when=when) for parameter in self._parameter(field, child)]
        return found

    def _fixed_at(self, path: str, tag: str, fields: Sequence[Parameter]) -> Any:
        """Return a choice of one kind, with stand-ins for what is searched in it."""
        leaf = self._paths.leaves[path]
        required = [part for part in parts(leaf.options[tag]) if part.default is REQUIRED]
        extremes = {p.path.rpartition(".")[2]: p.distribution.extremes[0] for p in fields}
        for values in ({part.name: stand_in(part.hint) for part in required}, extremes):
            try:
                return parsed(leaf.hint, {tag: values})
            except ValueError:
                continue
        return tag

    def _parameter(self, path: str, node: Node) -> list[Parameter]:
        entry = self._read.value(EntryKeys, node)
        if entry is REFUSED or holds_refused(node):
            return []
        when, distribution = self._when(entry.when), entry.range()
        if entry.categorical is not None:
            listed = self._read.filled(entry.categorical, "choice")
            return self._listed(path, node, [self._value(path, item) for item in listed], when)
        if distribution is None:
            self._read.report(node, f"expected one of {', '.join(KINDS)}, got {shown(plain(node))}")
            return []
        # Bounds are integers under a path of integers too; what lies between is not.
        low, high = distribution.low, distribution.high
        between = low + (high - low) / 2
        between += 1e-6 * max(1.0, abs(between)) * float(between).is_integer()
        probes = [low, high] if entry.int is not None else [low, high, between]
        if any(self._value(path, replace(node, value=value)) is REFUSED for value in probes):
            return []
        return [Parameter(path=path, distribution=distribution, when=when)]

    def _listed(self, path: str, node: Node, choices: Sequence[Any], when: When) -> list[Parameter]:
        """Return the parameter of a list of choices, none if they are wrong."""
        if REFUSED in choices:
            return []
        try:
            distribution: Distribution = Categorical(choices=tuple(choices))
        except RuleError as error:
            self._read.report(node, str(error))
            return []
        if any(isinstance(spelled(choice), tuple | dict) for choice in choices):
            text = "choices are numbers, text, booleans or null"
            self._read.report(node, f"{text}, got {shown(plain(node))}")
        return [Parameter(path=path, distribution=distribution, when=when)]

    def _may_vary(self, path: str, node: Node) -> bool:
        if path in self._unsearchable:
            self._read.report(node, "cannot be searched: points would not compare")
        return path not in self._unsearchable

    def _value(self, path: str, node: Node) -> Any:
        return self._read.setting(self._paths, path, node).value

    def _when(self, node: Node | None) -> dict[str, tuple[Any, ...]]:
        conditions: dict[str, tuple[Any, ...]] = {}
        for path, child in self._read.mapping(node).items():
            value = plain(child)
            conditions[path] = tuple(value) if isinstance(value, list) else (value,)
            if not conditions[path]:
                self._read.report(child, f"needs at least one value of {path!r}")
        return conditions

    def _parents_first(self, parameters: list[Parameter]) -> list[Parameter]:
        """Return the parameters so that each comes after those it depends on, else as they were."""
        ordered: list[Parameter] = []
        waiting = list(parameters)
        while waiting:
            unmet = {parameter.path for parameter in waiting}
            ready = [p for p in waiting if unmet.isdisjoint(p.when)]
            if not ready:
                node = self._nodes[waiting[0].path]
                self._read.report(node, "depends on itself through `when`")
                break
            ordered.append(ready[0])
            waiting.remove(ready[0])
        return ordered

    def _check_parents(self, parameters: Sequence[Parameter]) -> None:
        known = {parameter.path: parameter for parameter in parameters}
        for parameter in parameters:
            for path, values in parameter.when.items():
                choices = getattr(getattr(known.get(path), "distribution", None), "choices", None)
                text = f"no choice of {path!r}, which has {choices}"
                if path not in known:
                    hint = self._read.did_you_mean(path, known)
                    text = f"its parent {path!r} is not in the space{hint}"
                elif choices is None:
                    text = f"its parent {path!r} has no choices"
                elif all(value in choices for value in values):
                    continue
                self._read.report(self._nodes[parameter.path], f"when: {text}")
