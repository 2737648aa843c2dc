"""SearchReader: read and check the section `search` of a study file."""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from itertools import product
from typing import Any, Final

from mixup_core.config.building import parsed, with_values
from mixup_core.config.parts import parts
from mixup_core.config.written_forms import flatten, spelled, tag_meant
from mixup_core.problem import Config, Problem, fields_apart
from mixup_core.rules import RuleError, shown
from sweeps.reading.strict_yaml import REFUSED, At, Document, Mistake, Place
from sweeps.reading.study_keys import KINDS, EntryKeys, SearchKeys
from sweeps.reading.tree_paths import Setting, Settings, TreePaths, above, config_paths, stand_ins
from sweeps.reading.tree_reader import TreeReader
from sweeps.study.search import Search, SearchStrategy
from sweeps.study.space import MAX_GRID, Categorical, Distribution, Parameter, Space

KEYS: Final = TreePaths(SearchKeys)
SEARCH: At = ("search",)
SPACE: At = ("search", "space")

Configure = Callable[[Settings], Config | None]
"""Function that applies settings to the base configuration of the study. It reports faults, and
returns None if there are any."""

When = Mapping[str, tuple[Any, ...]]
"""Condition under which a parameter is searched: allowed values of other parameters, by path."""


class SearchReader:
    """Reads the section `search` of a study file; faulty parts are reported and skipped.

    The section lists the settings that Optuna varies, and the rules of the search.
    """

    def __init__(
        self, document: Document, problem: Problem, given: Collection[str], configure: Configure
    ) -> None:
        self._read = TreeReader(document, config_paths(problem, searched=True))
        self._leaves = self._read.paths.leaves
        self._problem = problem
        self._known = problem.searching.objectives
        self._given = given
        self._configure = configure
        self._fixed: dict[str, Setting] = {}
        self._found: list[Parameter] = []
        self._at: dict[str, At] = {}
        self._needs: dict[str, tuple[str, str]] = {}

    def search(self, written: Any, seeds: Sequence[int]) -> Search | None:
        """Return the search that a section describes; report its faults, and then return None."""
        keys, gone = TreeReader(self._read.document, KEYS).section(written, SEARCH)
        if keys is None or "space" in gone:
            return None
        strategy = keys.strategy()
        is_grid = strategy.sampler == "grid"
        space = self._space(keys.space, is_grid=is_grid)
        points = strategy.points
        if is_grid:
            points = None if space is None else space.size()
            if points is not None and points > MAX_GRID:
                self._read.report(SPACE, f"this grid has more than {MAX_GRID:,} points")
        elif points is None and "points" not in gone:
            self._read.report(SEARCH, "missing key 'points'")
        if "objective" not in gone:
            self._check_objectives(strategy.objectives)
        self._check_seeds(strategy, seeds)
        if space is None or points is None or self._read.faults:
            return None  # corners of an invalid space would repeat its faults
        base = self._base(space, strategy.objectives, seeds)
        if base is None or self._read.faults:
            return None
        return Search(base=base, space=space, points=points, strategy=strategy)

    def _check_objectives(self, names: Sequence[str]) -> None:
        at, objectives = (*SEARCH, "objective"), self._known
        for name in names:
            if name in objectives:
                continue
            if name.startswith("test/"):
                text = "a search must use validation metrics (val/...), because test data must not "
                self._read.report(at, f"{text}influence choices, got {name!r}")
            else:
                text = f"expected one of {', '.join(objectives)}, got {name!r}"
                self._read.report(at, text, name, objectives)

    def _check_seeds(self, strategy: SearchStrategy, seeds: Sequence[int]) -> None:
        after = strategy.prune_after
        if after is not None and after >= len(seeds):
            values = f"({after=}, seeds={len(seeds)})"
            text = f"`after < number of seeds` must hold, got {values}."
            self._read.report((*SEARCH, "prune"), text)
        if strategy.stop is not None and len(seeds) < 2:
            text = "needs at least two seeds, because their spread estimates the noise"
            self._read.report((*SEARCH, "stop"), text)
        if shared := sorted(set(seeds) & set(strategy.confirm_seeds)):
            text = f"must not be seeds of the study, got {shared[:5]}"
            self._read.report((*SEARCH, "confirm"), text)

    def _space(self, written: Any, *, is_grid: bool) -> Space | None:
        """Return the search space; None if it has a fault. Faults are added to the document."""
        before = len(self._read.faults)
        if written == {}:
            self._read.report(SPACE, "needs at least one path")
        for name, entry in self._read.mapping(written, SPACE).items():
            if path := self._read.known(name, (*SPACE, name)):
                self._path(path, name, entry, written)
        for parameter in self._found:
            at, among = self._at[parameter.path], parameter.distribution
            if is_grid and among.values() is None:
                text = "sampler: grid needs `values`, the number of values between the bounds"
                self._read.report(at, text)
            if not is_grid and getattr(among, "num_values", None) is not None:
                self._read.report(at, "remove `values`: only sampler: grid uses it")
        ordered = self._parents_first()
        if len(self._read.faults) == before:
            self._check_parents()
        return Space(parameters=ordered) if len(self._read.faults) == before else None

    def _path(self, path: str, name: str, entry: Any, written: Mapping[str, Any]) -> None:
        """Add the parameters for a path of the space, which a file writes as `name`."""
        at = (*SPACE, name)
        if inside := [head for head in above(path) if head in written]:
            field = path.rpartition(".")[2]
            text = f"{inside[0]} is in the search space too; write `{field}` under {inside[0]}"
            self._read.report(at, text)
        elif path in self._at:
            self._read.report(at, f"{path} is given twice")
        elif path in self._read.paths.choices:
            self._choice(path, entry, at)
        else:
            if path != name:
                self._needs[path] = self._read.paths.tagged[name][1]
            self._entry(path, entry, at, {})

    def _base(self, space: Space, objectives: Sequence[str], seeds: Sequence[int]) -> Config | None:
        """Check every corner of the search space; return the configuration that points modify."""
        before = len(self._read.faults)
        base = self._configure(self._fixed)
        if base is not None and self._report_other_data(base, space, objectives):
            return None
        corners = []
        for values in space.corners():
            point = {
                path: Setting(value=value, at=self._at[path], needs=self._needs.get(path))
                for path, value in values.items()
            }
            if (config := self._configure(self._fixed | point)) is not None:
                corners.append((values, config))
        first: dict[tuple[Place, str, str], Mistake] = {}
        for fault in self._read.faults[before:]:
            rule = fault.text.partition(", got (")[0]
            first.setdefault((fault.place, fault.path, rule), fault)
        self._read.faults[before:] = first.values()
        if base is not None and not self._read.faults:
            self._check_kept(base, corners)
            self._check_recorded(corners, objectives, seeds)
        return base

    def _report_other_data(self, base: Config, space: Space, objectives: Sequence[str]) -> bool:
        """Report each parameter that changes what an objective is measured on; True if any does."""
        population, settings = self._problem.comparing.population, flatten(base)
        found: dict[str, str] = {}
        for values, objective in product(space.corners(), objectives):
            with suppress(RuleError):  # `_configure` reports it
                config = with_values(base, values)
                if population(config, objective) == population(base, objective):
                    continue
                fields = values.keys() & fields_apart(base, config, objective)
                for path in fields or {p for p in values if values[p] != settings.get(p)}:
                    rule = f"cannot be searched: {objective} would be measured on other data"
                    got = f"{shown(values[path])}, but base has {shown(settings.get(path))}"
                    found.setdefault(path, f"{rule}, got {got}; set {path} in base instead")
        for path, text in found.items():
            self._read.report(self._at[path], text)
        return bool(found)

    def _check_recorded(
        self,
        corners: Sequence[tuple[Mapping[str, Any], Config]],
        objectives: Sequence[str],
        seeds: Sequence[int],
    ) -> None:
        """Report each objective that a point does not record."""
        for objective in objectives:
            for values, config in corners:
                if lacks := self._problem.measuring.missing(config, objective, 1, seeds):
                    point = ", ".join(f"{path}={shown(value)}" for path, value in values.items())
                    text = f"a point ({point}) does not record {objective}: {lacks}"
                    self._read.report((*SEARCH, "objective"), text)
                    break

    def _check_kept(
        self, base: Config, corners: Sequence[tuple[Mapping[str, Any], Config]]
    ) -> None:
        """Check that points keep what the study file sets for all of them."""
        for values, config in corners:
            try:
                actual = flatten(with_values(base, values))
            except RuleError as error:
                self._read.report(SPACE, str(error))
                return
            wanted = flatten(config)
            lost = [path for path, value in wanted.items() if actual.get(path, REFUSED) != value]
            if lost:
                text = (
                    f"add {lost[0]} to the space: base sets it to {shown(wanted[lost[0]])}, but "
                    f"points of another kind would have {shown(actual.get(lost[0]))}"
                )
                self._read.report(SPACE, text)
                return

    def _choice(self, path: str, entry: Any, at: At) -> None:
        """Add the parameters for a choice, a field that holds one of several kinds of values."""
        kinds = self._leaves[path].part.options
        entry = self._by_own_tag(path, entry)
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
        """Add the parameter for a path, then those for the fields of the kinds that it lists."""
        keys = self._read.value(EntryKeys, entry, at)
        if keys is REFUSED:
            return
        when, among = {**when, **self._when(entry, at)}, keys.range()
        if "categorical" in entry:
            self._categorical(path, entry["categorical"], at, when, kinds)
        elif among is None:
            self._read.report(at, f"expected one of {', '.join(KINDS)}, got {shown(entry)}")
        else:
            # Integer bounds also suit a path of integers; a value between them detects such a path.
            between = among.low + (among.high - among.low) / 2
            between += 1e-6 * max(1.0, abs(between)) * float(between).is_integer()
            probes = [among.low, among.high, between][: 2 if keys.int is not None else 3]
            tried = (self._read.setting(path, value, at) for value in probes)
            if all(setting.value is not REFUSED for setting in tried):
                self._add(path, among, at, when)

    def _categorical(
        self, path: str, choices: Any, at: At, when: When, kinds: Collection[str]
    ) -> None:
        default = getattr(self._leaves[path].part.default, "tag", None)
        chosen: list[Setting] = []
        listed = self._read.filled(choices, (*at, "categorical"), "choice")
        if kinds:
            listed = {place: self._by_own_tag(path, choice) for place, choice in listed.items()}
        for place, choice in listed.items():
            kind = _only_key(choice)
            chosen.append(self._read.setting(path, kind if kind in kinds else choice, place))
            if kinds and path in self._given and choice == default:
                text = f"{choice} has no field to search; remove it here and make it an arm"
                self._read.report(place, text)
        self._listed(path, chosen, at, when)
        for place, choice in listed.items():
            if (kind := _only_key(choice)) in kinds:
                self._fields(path, choice, place, {path: (kind,)})

    def _fields(self, path: str, choice: Any, at: At, when: When) -> None:
        """Add parameters for the fields of one dataclass that a choice can hold."""
        ((kind, content),) = choice.items()
        names, within = self._names(path, kind), (*at, kind)
        is_alone = len(names) == 1 and not (isinstance(content, dict) and names[0] in content)
        entries = {names[0]: content} if is_alone else self._read.mapping(content, within)
        for name, entry in entries.items():
            field, field_at = f"{path}.{name}", within if is_alone else (*within, name)
            if name not in names:
                reason = self._read.paths.reserved.get(field)
                text = reason or f"unknown key {name!r}"
                self._read.report(field_at, text, "" if reason else name, names)
            elif not isinstance(entry, dict):
                self._listed(field, [self._read.setting(field, entry, field_at)], field_at, when)
            else:
                if "when" in entry:
                    text = "remove `when`: this field is searched exactly if its choice is taken"
                    self._read.report((*field_at, "when"), text)
                self._entry(field, entry, field_at, when)

    def _by_own_tag(self, path: str, entry: Any) -> Any:
        """Replace a tag that several laws share by the tag of the law that has the given fields."""
        if not isinstance(entry, dict) or len(entry) != 1:
            return entry
        kinds = self._leaves[path].part.options
        ((_, content),) = entry.items()
        return {tag_meant(kinds, entry, {tag: self._names(path, tag) for tag in kinds}): content}

    def _names(self, path: str, kind: str) -> list[str]:
        """Return the fields that a study file may set for one dataclass that a choice can hold."""
        fields = parts(self._leaves[path].part.options[kind])
        return [part.name for part in fields if f"{path}.{part.name}" in self._leaves]

    def _fixed_at(self, path: str, tag: str, fields: Sequence[Parameter]) -> Any:
        """Return a dataclass for a choice, with placeholders in the fields that are searched."""
        choice = self._leaves[path].part
        extremes = {p.path.rpartition(".")[2]: p.distribution.extremes[0] for p in fields}
        for values in (stand_ins(choice.options[tag]), extremes):
            with suppress(ValueError):
                return parsed(choice.hint, {tag: values})
        return tag

    def _listed(self, path: str, chosen: Sequence[Setting], at: At, when: When) -> None:
        """Add a categorical parameter whose choices are the valid values of a list."""
        choices = tuple(setting.value for setting in chosen if setting.value is not REFUSED)
        for choice in map(spelled, choices):
            if isinstance(choice, tuple | dict):
                text = "choices must be numbers, text, booleans or null"
                self._read.report(at, f"{text}, got {shown(choice)}")
        try:
            if choices:
                self._add(path, Categorical(choices=choices), at, when)
        except RuleError as error:
            self._read.report(at, str(error))

    def _add(self, path: str, among: Distribution, at: At, when: When) -> None:
        self._at[path] = at
        self._found.append(Parameter(path=path, distribution=among, when=when))

    def _when(self, entry: Mapping[str, Any], at: At) -> When:
        conditions: dict[str, tuple[Any, ...]] = {}
        for name, value in self._read.mapping(entry.get("when", {}), (*at, "when")).items():
            path = self._read.paths.short(name)
            conditions[path] = tuple(value) if isinstance(value, list) else (value,)
            if not conditions[path]:
                self._read.report((*at, "when", path), f"needs at least one value of {path!r}")
        return conditions

    def _parents_first(self) -> tuple[Parameter, ...]:
        """Return the parameters, each after the parameters that its `when` names."""
        ordered: list[Parameter] = []
        waiting = list(self._found)
        while waiting:
            unmet = {parameter.path for parameter in waiting}
            if not (ready := [p for p in waiting if unmet.isdisjoint(p.when)]):
                text = "depends on itself through `when`"
                self._read.report(self._at[waiting[0].path], text)
                break
            ordered.append(ready[0])
            waiting.remove(ready[0])
        return tuple(ordered)

    def _check_parents(self) -> None:
        distributions = {parameter.path: parameter.distribution for parameter in self._found}
        for parameter in self._found:
            at = self._at[parameter.path]
            for path, values in parameter.when.items():
                choices = getattr(distributions.get(path), "choices", None)
                if path not in distributions:
                    text = f"when: {path!r} is not in the search space"
                    self._read.report(at, text, path, distributions)
                elif choices is None:
                    text = f"when: {path!r} is not searched as a list of values"
                    self._read.report(at, text)
                elif any(value not in choices for value in values):
                    text = f"when: every value must be a choice of {path!r}, which has {choices}"
                    self._read.report(at, f"{text}, got {values}")


def _only_key(entry: Any) -> Any:
    """Return the key of a mapping with exactly one item; None for any other value."""
    return next(iter(entry)) if isinstance(entry, dict) and len(entry) == 1 else None
