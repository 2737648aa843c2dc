"""SpaceReader: from `search.space` of a study file to a checked space."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mixup_core.images.config import TrainConfig
from mixup_core.laws import Beta, Law
from mixup_core.problem import MAX_SEED
from mixup_core.tree import parsed as parsed_as
from sweeps.reading.config_paths import (
    ALPHA_PATHS,
    LAW_PATHS,
    PathError,
    Setting,
    Settings,
    check_path,
    did_you_mean,
    parse_value,
)
from sweeps.reading.node_reader import NodeReader
from sweeps.reading.strict_yaml import Node, Place, Refused, holds_refused, plain, spell
from sweeps.space import MAX_GRID, Categorical, Distribution, Integer, Parameter, Real, Space

KINDS = ("log_uniform", "uniform", "int", "categorical")
OPTIONS = {"log_uniform": ("values",), "uniform": ("values",), "int": ("step",), "categorical": ()}
"""Kind of distribution to the keys that may stand beside it, `when` apart."""

FIXED = ("data.name", "data.folder", "data.image_size", "data.val_size", "data.test")
"""Paths that decide what a validation error means, so that points would not compare."""

Configure = Callable[[Settings], TrainConfig | None]
"""Gives the configuration of some settings over the base of the study, None if there is none; it
reports what is wrong."""


class SpaceReader:
    """Turns the node of a space into parameters; what is wrong is reported and left out."""

    def __init__(self, read: NodeReader, configure: Configure, *, is_grid: bool) -> None:
        """Make a reader.

        Args:
            read: Reads nodes, and collects problems.
            configure: What the extremes of the space are tried with.
            is_grid: Whether every point of the space is to be tried.
        """
        self._read = read
        self._configure = configure
        self._is_grid = is_grid
        self._fixed: dict[str, Setting] = {}
        self._places: dict[str, Place] = {}

    def space(self, node: Node | None, search: Place) -> Space | None:
        """Return the space of a node; None if there was a problem.

        Args:
            node: Value of the key `search.space`; None where it is absent.
            search: Place of the search.
        """
        if node is None:
            self._read.report(search, "search", "missing key 'space'")
            return None
        entries = self._read.mapping(node, "search.space")
        if entries is None:
            return None
        if not entries:
            self._read.report(node.place, "search.space", "needs at least one path")
        before = len(self._read.problems)
        self._places |= {path: child.place for path, child in entries.items()}
        parameters: list[Parameter] = []
        for path, child in entries.items():
            if self._may_be_searched(path, child, entries):
                read = self._law if path in LAW_PATHS else self._parameter
                parameters += read(path, child)
        parameters = self._parents_first(parameters)
        if len(self._read.problems) == before:
            self._check_parents(parameters)
        if len(self._read.problems) > before:
            return None
        return Space(parameters=tuple(parameters))

    def base(self, space: Space) -> TrainConfig | None:
        """Return the configuration that points start from, if every corner of the space can be.

        A rule that is broken at many corners is reported at the first.
        """
        problems = self._read.problems
        broken: set[tuple[Place, str, str]] = set()
        for values in space.corners():
            before = len(problems)
            self._configure(self._fixed | self._settings(values))
            found, problems[before:] = problems[before:], []
            for problem in found:
                rule = (problem.place, problem.path, problem.text.partition(" must hold")[0])
                if rule not in broken:
                    problems.append(problem)
                broken.add(rule)
        return self._configure(self._fixed)

    def _may_be_searched(self, path: str, node: Node, entries: Mapping[str, Node]) -> bool:
        try:
            check_path(path)
        except PathError as error:
            text = str(error)
        else:
            law_path = ALPHA_PATHS.get(path)
            if path in FIXED:
                text = "cannot be searched: points would not compare"
            elif law_path in entries:
                text = f"{law_path} is in the space; write the alpha there"
            else:
                return True
        self._read.report(node.place, f"search.space.{path}", text)
        return False

    def _law(self, path: str, node: Node) -> list[Parameter]:
        """Return the parameters of a law: its alpha, its name, or a name and an alpha under it."""
        where = f"search.space.{path}"
        parts = self._read.mapping(node, where)
        if parts is None:
            return []
        if "beta" in parts:
            self._read.only(parts, ("beta",), where)
            self._fixed[path] = Setting(value=Beta(alpha=1.0), place=node.place, where=where)
            return self._alpha(path, parts["beta"], {})
        choices = parts.get("categorical")
        if choices is None or not isinstance(choices.value, list):
            text = "expected {beta: DISTRIBUTION} or {categorical: [LAW, ...]}"
            self._read.report(node.place, where, f"{text}, got {spell(plain(node))}")
            return []
        self._read.only(parts, ("categorical", "when"), where)
        names: list[str] = []
        alpha: list[Parameter] = []
        for child in choices.value:
            if isinstance(child.value, Refused):
                continue
            if isinstance(child.value, dict) and set(child.value) == {"beta"}:
                names.append("beta")
                alpha = self._alpha(path, child.value["beta"], {path: ("beta",)})
            elif child.value == "erm" and path == "mix.law":
                self._read.report(child.place, where, "erm has nothing to search; make it an arm")
            else:
                names.append(str(self._parsed(path, child, where)))
        distribution = self._built(choices.place, where, lambda: Categorical(choices=tuple(names)))
        if distribution is None:
            return []
        when = self._when(parts.get("when"), where)
        return [Parameter(path=path, distribution=distribution, when=when), *alpha]

    def _alpha(self, path: str, node: Node, when: Mapping[str, tuple[Any, ...]]) -> list[Parameter]:
        """Return the alpha of a Beta law; a number stands for the one choice there is."""
        alpha_path = f"{path}.alpha"
        where = f"search.space.{alpha_path}"
        self._places[alpha_path] = node.place
        if isinstance(node.value, int | float) and not isinstance(node.value, bool):
            value = self._parsed(alpha_path, node, where)
            fixed = Categorical(choices=(value,))
            return [Parameter(path=alpha_path, distribution=fixed, when=when)]
        if isinstance(node.value, dict) and "when" in node.value:
            text = "exists wherever its law does; it has no `when`"
            self._read.report(node.value["when"].place, where, text)
        found = self._parameter(alpha_path, node)
        return [Parameter(path=p.path, distribution=p.distribution, when=when) for p in found]

    def _parameter(self, path: str, node: Node) -> list[Parameter]:
        where = f"search.space.{path}"
        parts = self._read.mapping(node, where)
        if parts is None or holds_refused(node):
            return []
        kinds = [kind for kind in KINDS if kind in parts]
        if len(kinds) != 1:
            text = f"expected one of {', '.join(KINDS)}, got {spell(plain(node))}"
            self._read.report(node.place, where, f"{text}{_nearest_kind(parts)}")
            return []
        (kind,) = kinds
        self._read.only(parts, (kind, "when", *OPTIONS[kind]), where)
        if kind == "categorical":
            distribution = self._categorical(path, parts[kind], where)
        else:
            distribution = self._range(path, kind, parts, where)
        if distribution is None:
            return []
        if self._is_grid and distribution.values() is None:
            text = "a grid needs `values`, a number of values, beside the bounds"
            self._read.report(node.place, where, text)
        if not self._is_grid and getattr(distribution, "num_values", None) is not None:
            self._read.report(node.place, where, "`values` is for sampler: grid")
        when = self._when(parts.get("when"), where)
        return [Parameter(path=path, distribution=distribution, when=when)]

    def _categorical(self, path: str, given: Node, where: str) -> Distribution | None:
        if not isinstance(given.value, list):
            text = f"expected a list of choices, got {spell(plain(given))}"
            self._read.report(given.place, where, text)
            return None
        for child in given.value:
            if isinstance(child.value, list | dict):
                text = "choices are numbers, text, booleans or null"
                self._read.report(child.place, where, f"{text}, got {spell(plain(child))}")
                return None
        values = [self._parsed(path, child, where) for child in given.value]
        return self._built(given.place, where, lambda: Categorical(choices=tuple(values)))

    def _range(
        self, path: str, kind: str, parts: Mapping[str, Node], where: str
    ) -> Distribution | None:
        given = parts[kind]
        if not isinstance(given.value, list):
            text = f"expected [LOW, HIGH], got {spell(plain(given))}"
            self._read.report(given.place, where, text)
            return None
        bounds = [child.value for child in given.value]
        if len(bounds) != 2 or not all(_is_number(bound, kind) for bound in bounds):
            what = "integers" if kind == "int" else "numbers"
            text = f"expected [LOW, HIGH], two {what}, got {spell(plain(given))}"
            self._read.report(given.place, where, text)
            return None
        low, high = bounds
        before = len(self._read.problems)
        if kind == "int":
            step = self._read.integer(parts.get("step"), f"{where}.step", 1, MAX_SEED, 1)
            distribution = self._built(
                given.place,
                where,
                lambda: Integer(low=low, high=high, step=step),  # type: ignore[arg-type]
            )
        else:
            count = self._read.integer(parts.get("values"), f"{where}.values", 2, MAX_GRID, None)
            distribution = self._built(
                given.place,
                where,
                lambda: Real(
                    low=float(low),  # type: ignore[arg-type]
                    high=float(high),  # type: ignore[arg-type]
                    is_log=kind == "log_uniform",
                    num_values=count,
                ),
            )
        # Bounds are integers under a path of integers too; what lies between is not.
        probes = given.value if kind == "int" else [*given.value, _halfway(given)]
        for probe in probes:
            if len(self._read.problems) == before:
                self._parsed(path, probe, where)
        return distribution if len(self._read.problems) == before else None

    def _built(
        self, place: Place, where: str, build: Callable[[], Distribution]
    ) -> Distribution | None:
        try:
            return build()
        except ValueError as error:
            self._read.report(place, where, str(error))
            return None

    def _parsed(self, path: str, node: Node, where: str) -> Any:
        try:
            value = parse_value(path, plain(node))
        except (PathError, ValueError) as error:
            self._read.report(node.place, where, str(error))
            return None
        return plain(node) if isinstance(value, Law) else value

    def _when(self, node: Node | None, where: str) -> dict[str, tuple[Any, ...]]:
        where = f"{where}.when"
        parts = None if node is None else self._read.mapping(node, where)
        conditions: dict[str, tuple[Any, ...]] = {}
        for path, child in (parts or {}).items():
            self._places.setdefault(where, child.place)
            value = plain(child)
            conditions[path] = tuple(value) if isinstance(value, list) else (value,)
            if not conditions[path]:
                self._read.report(child.place, where, f"needs at least one value of {path!r}")
        return conditions

    def _parents_first(self, parameters: list[Parameter]) -> list[Parameter]:
        """Return the parameters so that each comes after those it depends on, else as they were."""
        ordered: list[Parameter] = []
        waiting = list(parameters)
        while waiting:
            unmet = {parameter.path for parameter in waiting}
            ready = [p for p in waiting if unmet.isdisjoint(p.when)]
            if not ready:
                path = waiting[0].path
                text = "depends on itself through `when`"
                self._read.report(self._places[path], f"search.space.{path}", text)
                break
            ordered.append(ready[0])
            waiting.remove(ready[0])
        return ordered

    def _check_parents(self, parameters: Sequence[Parameter]) -> None:
        known = {parameter.path: parameter for parameter in parameters}
        for parameter in parameters:
            where = f"search.space.{parameter.path}.when"
            place = self._places.get(where, self._places[parameter.path])
            for path, values in parameter.when.items():
                parent = known.get(path)
                if parent is None:
                    text = f"its parent {path!r} is not in the space{did_you_mean(path, known)}"
                    self._read.report(place, where, text)
                elif not isinstance(parent.distribution, Categorical):
                    self._read.report(place, where, f"its parent {path!r} has no choices")
                else:
                    choices = parent.distribution.choices
                    listed = ", ".join(map(str, choices))
                    for value in values:
                        if value not in choices:
                            text = f"{value!r} is no choice of {path!r}: {listed}"
                            self._read.report(place, where, text)

    def _settings(self, values: Mapping[str, Any]) -> dict[str, Setting]:
        """Return what a point sets, as a study file would; a law stands under its own path."""
        settings: dict[str, Setting] = {}
        for path, value in values.items():
            law_path = ALPHA_PATHS.get(path)
            target, parsed = path, value
            if path in LAW_PATHS:
                parsed = Beta(alpha=1.0) if value == "beta" else parsed_as(Law, value)
            elif law_path is not None and (law_path in values or law_path in self._fixed):
                target, parsed = law_path, Beta(alpha=value)
            settings[target] = Setting(
                value=parsed, place=self._places[path], where=f"search.space.{path}"
            )
        return settings


def _is_number(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return False
    return isinstance(value, int) if kind == "int" else isinstance(value, int | float)


def _halfway(bounds: Node) -> Node:
    """Return a number between two bounds that is no integer, to try a path's type with."""
    assert isinstance(bounds.value, list)
    low, high = (float(child.value) for child in bounds.value)  # type: ignore[arg-type]
    halfway = low + (high - low) / 2
    return Node(
        value=halfway + 1e-6 * max(1.0, abs(halfway)) * halfway.is_integer(), place=bounds.place
    )


def _nearest_kind(parts: Mapping[str, Node]) -> str:
    return "".join(did_you_mean(key, KINDS) for key in list(parts)[:1])
