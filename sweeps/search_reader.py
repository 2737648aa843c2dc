"""SearchReader: from the `search:` section of a study file to a checked search."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast, get_args

from mixup_core.config import MAX_SEED, TrainConfig
from mixup_core.laws import Beta, Law, parse_law
from sweeps.config_paths import (
    ALPHA_PATHS,
    LAW_PATHS,
    PathError,
    Setting,
    check_path,
    did_you_mean,
    parse_value,
    schema_of,
)
from sweeps.search import (
    MAX_GRID,
    OBJECTIVES,
    Budget,
    Categorical,
    Distribution,
    Integer,
    Parameter,
    Real,
    SamplerName,
    Search,
    SelectionRule,
    Space,
)
from sweeps.strict_yaml import Node, Place, Problem, Refused, holds_refused, plain, spell

MAX_POINTS = 10_000

KEYS = (
    "space", "points", "objective", "sampler", "seed", "prune", "budget", "select", "confirm",
)  # fmt: skip

KINDS = ("log_uniform", "uniform", "int", "categorical")
OPTIONS = {"log_uniform": ("values",), "uniform": ("values",), "int": ("step",), "categorical": ()}
"""Kind of distribution to the keys that may stand beside it, `when` apart."""

FIXED = ("data.name", "data.folder", "data.image_size", "data.val_size", "data.test")
"""Paths that decide what a validation error means, so that points would not compare."""

Settings = Mapping[str, Setting]


class SearchReader:
    """Turns the node of a search into a search, collecting problems; what is wrong is left out."""

    def __init__(
        self, problems: list[Problem], configure: Callable[[Settings], TrainConfig | None]
    ) -> None:
        """Make a reader.

        Args:
            problems: What is found is appended.
            configure: Gives the configuration of some settings over the base of the study, None if
                there is none; it reports what is wrong.
        """
        self._problems = problems
        self._configure = configure
        self._fixed: dict[str, Setting] = {}
        self._places: dict[str, Place] = {}

    def search(self, node: Node, seeds: Sequence[int]) -> Search | None:
        """Return the search of a node; None if there was a problem.

        Args:
            node: Value of the key `search`.
            seeds: Of the study.
        """
        before = len(self._problems)
        parts = self._mapping(node, "search")
        if parts is None:
            return None
        for key, child in parts.items():
            if key not in KEYS:
                text = f"unknown key {key!r}{did_you_mean(key, KEYS)}"
                self._report(child.place, "search", text)
        sampler = self._choice(parts.get("sampler"), "search.sampler", get_args(SamplerName), "tpe")
        space = self._space(parts.get("space"), node.place, is_grid=sampler == "grid")
        points = self._points(parts.get("points"), node.place, space, sampler == "grid")
        objectives = self._objectives(parts.get("objective"), node.place)
        seed = self._integer(parts.get("seed"), "search.seed", 0, 2**31 - 1, 0)
        prune_after = self._prune(parts.get("prune"), len(seeds))
        budget = self._budget(parts.get("budget"))
        select = self._choice(
            parts.get("select"), "search.select", get_args(SelectionRule), "val-mean"
        )
        confirm_seeds = self._confirm_seeds(parts.get("confirm"), seeds)
        if prune_after is not None and len(objectives) > 1:
            text = "is for one objective; there are several"
            self._report(parts["prune"].place, "search.prune", text)
        if space is None or points is None or seed is None or len(self._problems) > before:
            return None
        base = self._check_corners(space)
        if base is None or len(self._problems) > before:
            return None
        return Search(
            base=base,
            space=space,
            points=points,
            objectives=objectives,
            sampler=cast(SamplerName, sampler),
            seed=seed,
            prune_after=prune_after,
            budget=budget,
            select=cast(SelectionRule, select),
            confirm_seeds=confirm_seeds,
        )

    def _report(self, place: Place, path: str, text: str) -> None:
        self._problems.append(Problem(place=place, path=path, text=text))

    def _mapping(self, node: Node, path: str) -> Mapping[str, Node] | None:
        if isinstance(node.value, dict):
            return node.value
        if not isinstance(node.value, Refused):
            self._report(node.place, path, f"expected a mapping, got {spell(plain(node))}")
        return None

    def _choice(self, node: Node | None, path: str, names: Sequence[str], default: str) -> str:
        if node is None or isinstance(node.value, Refused):
            return default
        if node.value in names:
            return str(node.value)
        text = f"expected one of {', '.join(names)}, got {spell(plain(node))}"
        self._report(node.place, path, f"{text}{did_you_mean(str(node.value), names)}")
        return default

    def _integer(
        self, node: Node | None, path: str, low: int, high: int, default: int | None
    ) -> int | None:
        if node is None or isinstance(node.value, Refused):
            return default
        value = node.value
        if isinstance(value, int) and not isinstance(value, bool) and low <= value <= high:
            return value
        self._report(
            node.place, path, f"expected an integer in {low}..{high}, got {spell(plain(node))}"
        )
        return default

    def _points(
        self, node: Node | None, place: Place, space: Space | None, is_grid: bool
    ) -> int | None:
        if is_grid:
            if node is not None:
                self._report(node.place, "search.points", "a grid takes all of its points")
            size = None if space is None else space.size()
            if size is not None and size > MAX_GRID:
                text = f"the grid has more than {MAX_GRID:,} points"
                self._report(place, "search.space", text)
            return size
        if node is None:
            self._report(place, "search", "missing key 'points'")
        return self._integer(node, "search.points", 1, MAX_POINTS, None)

    def _objectives(self, node: Node | None, place: Place) -> tuple[str, ...]:
        if node is None:
            self._report(place, "search", "missing key 'objective'")
            return ()
        given = node.value if isinstance(node.value, list) else [node]
        names: list[str] = []
        for child in given:
            name = child.value
            if isinstance(name, Refused):
                continue
            if isinstance(name, str) and name.startswith("test/"):
                text = f"only val/* may be searched, got {name!r}: test data chooses nothing"
            elif name not in OBJECTIVES:
                text = f"expected one of {', '.join(OBJECTIVES)}, got {spell(plain(child))}"
                text += did_you_mean(str(name), OBJECTIVES)
            elif name in names:
                text = f"got {name!r} twice"
            else:
                names.append(str(name))
                continue
            self._report(child.place, "search.objective", text)
        if not given:
            self._report(node.place, "search.objective", "needs at least one")
        return tuple(names)

    def _prune(self, node: Node | None, num_seeds: int) -> int | None:
        if node is None or node.value is None:
            return None
        parts = self._mapping(node, "search.prune")
        if parts is None:
            return None
        self._only(parts, ("after",), "search.prune")
        if "after" not in parts:
            self._report(node.place, "search.prune", "missing key 'after'")
        after = self._integer(parts.get("after"), "search.prune.after", 2, MAX_POINTS, None)
        if after is not None and after >= num_seeds:
            text = f"`2 <= after < number of seeds` must hold, got (after={after}, {num_seeds=})."
            self._report(parts["after"].place, "search.prune.after", text)
        return after

    def _budget(self, node: Node | None) -> Budget:
        parts = None if node is None else self._mapping(node, "search.budget")
        if node is None or parts is None:
            return Budget()
        names = ("hours", "gpu_hours")
        self._only(parts, names, "search.budget")
        limits: dict[str, float] = {}
        for name in names:
            limit = parts[name].value if name in parts else None
            if isinstance(limit, int | float) and not isinstance(limit, bool):
                limits[name] = limit
            elif name in parts and not isinstance(limit, Refused):
                text = f"expected a number, got {spell(plain(parts[name]))}"
                self._report(parts[name].place, f"search.budget.{name}", text)
        try:
            return Budget(**limits)
        except ValueError as error:
            self._report(node.place, "search.budget", str(error))
            return Budget()

    def _confirm_seeds(self, node: Node | None, seeds: Sequence[int]) -> tuple[int, ...]:
        parts = None if node is None else self._mapping(node, "search.confirm")
        if node is None or parts is None:
            return ()
        self._only(parts, ("seeds",), "search.confirm")
        listed = parts.get("seeds")
        if listed is None or not isinstance(listed.value, list) or not listed.value:
            text = "needs `seeds`, a list of seeds that the search does not use"
            self._report(node.place, "search.confirm", text)
            return ()
        found: list[int] = []
        for child in listed.value:
            seed = child.value
            is_seed = isinstance(seed, int) and not isinstance(seed, bool)
            if not is_seed or not 0 <= seed <= MAX_SEED or seed in found:  # type: ignore[operator]
                text = f"seeds are distinct integers in 0..2^63-1, got {spell(plain(child))}"
                self._report(child.place, "search.confirm.seeds", text)
            elif seed in seeds:
                text = f"must be seeds that the search does not use, got {seed}"
                self._report(child.place, "search.confirm.seeds", text)
            else:
                found.append(seed)  # type: ignore[arg-type]
        return tuple(found)

    def _only(self, parts: Mapping[str, Node], names: Sequence[str], path: str) -> None:
        for key, child in parts.items():
            if key not in names:
                text = f"unknown key {key!r}{did_you_mean(key, names)}"
                self._report(child.place, path, text)

    def _space(self, node: Node | None, place: Place, *, is_grid: bool) -> Space | None:
        if node is None:
            self._report(place, "search", "missing key 'space'")
            return None
        entries = self._mapping(node, "search.space")
        if entries is None:
            return None
        if not entries:
            self._report(node.place, "search.space", "needs at least one path")
        before = len(self._problems)
        self._places |= {path: child.place for path, child in entries.items()}
        parameters: list[Parameter] = []
        for path, child in entries.items():
            where = f"search.space.{path}"
            try:
                check_path(path)
            except PathError as error:
                self._report(child.place, where, str(error))
                continue
            if path in FIXED:
                self._report(child.place, where, "cannot be searched: points would not compare")
            elif path in LAW_PATHS:
                parameters += self._law(path, child, is_grid=is_grid)
            else:
                parameters += self._parameter(path, child, is_grid=is_grid)
        parameters = self._parents_first(parameters)
        if len(self._problems) == before:
            self._check_parents(parameters)
        return Space(parameters=tuple(parameters)) if len(self._problems) == before else None

    def _law(self, path: str, node: Node, *, is_grid: bool) -> list[Parameter]:
        """Return the parameters of a law: its alpha, its name, or a name and an alpha under it."""
        where = f"search.space.{path}"
        parts = self._mapping(node, where)
        if parts is None:
            return []
        if "beta" in parts:
            self._only(parts, ("beta",), where)
            self._fixed[path] = Setting(value=Beta(alpha=1.0), place=node.place, where=where)
            return self._alpha(path, parts["beta"], {}, is_grid=is_grid)
        choices = parts.get("categorical")
        if choices is None or not isinstance(choices.value, list):
            text = "expected {beta: DISTRIBUTION} or {categorical: [LAW, ...]}"
            self._report(node.place, where, f"{text}, got {spell(plain(node))}")
            return []
        self._only(parts, ("categorical", "when"), where)
        names: list[str] = []
        alpha: list[Parameter] = []
        for child in choices.value:
            if isinstance(child.value, dict) and set(child.value) == {"beta"}:
                names.append("beta")
                alpha = self._alpha(path, child.value["beta"], {path: ("beta",)}, is_grid=is_grid)
            elif child.value == "erm" and path == "mix.law":
                self._report(child.place, where, "erm has nothing to search; make it an arm")
            else:
                names.append(str(self._parsed(path, child, where)))
        distribution = self._built(choices.place, where, lambda: Categorical(choices=tuple(names)))
        if distribution is None:
            return []
        when = self._when(parts.get("when"), where)
        return [Parameter(path=path, distribution=distribution, when=when), *alpha]

    def _alpha(
        self, path: str, node: Node, when: Mapping[str, tuple[Any, ...]], *, is_grid: bool
    ) -> list[Parameter]:
        """Return the alpha of a Beta law; a number stands for the one choice there is."""
        alpha_path = f"{path}.alpha"
        self._places[alpha_path] = node.place
        if isinstance(node.value, int | float) and not isinstance(node.value, bool):
            value = self._parsed(alpha_path, node, f"search.space.{alpha_path}")
            fixed = Categorical(choices=(value,))
            return [Parameter(path=alpha_path, distribution=fixed, when=when)]
        found = self._parameter(alpha_path, node, is_grid=is_grid)
        return [Parameter(path=p.path, distribution=p.distribution, when=when) for p in found]

    def _parameter(self, path: str, node: Node, *, is_grid: bool) -> list[Parameter]:
        where = f"search.space.{path}"
        parts = self._mapping(node, where)
        if parts is None or holds_refused(node):
            return []
        kinds = [kind for kind in KINDS if kind in parts]
        if len(kinds) != 1:
            text = f"expected one of {', '.join(KINDS)}, got {spell(plain(node))}"
            self._report(node.place, where, f"{text}{_nearest_kind(parts)}")
            return []
        (kind,) = kinds
        self._only(parts, (kind, "when", *OPTIONS[kind]), where)
        distribution = self._distribution(path, kind, parts, where)
        if distribution is None:
            return []
        if is_grid and distribution.values() is None:
            text = "a grid needs `values`, a number of values, beside the bounds"
            self._report(node.place, where, text)
        if not is_grid and isinstance(distribution, Real) and distribution.num_values is not None:
            self._report(node.place, where, "`values` is for sampler: grid")
        return [
            Parameter(
                path=path, distribution=distribution, when=self._when(parts.get("when"), where)
            )
        ]

    def _distribution(
        self, path: str, kind: str, parts: Mapping[str, Node], where: str
    ) -> Distribution | None:
        given = parts[kind]
        if not isinstance(given.value, list):
            what = "a list of choices" if kind == "categorical" else "[LOW, HIGH]"
            self._report(given.place, where, f"expected {what}, got {spell(plain(given))}")
            return None
        if kind == "categorical":
            for child in given.value:
                if isinstance(child.value, list | dict):
                    text = "choices are numbers, text, booleans or null"
                    self._report(child.place, where, f"{text}, got {spell(plain(child))}")
                    return None
            values = [self._parsed(path, child, where) for child in given.value]
            return self._built(given.place, where, lambda: Categorical(choices=tuple(values)))
        numbers = [child.value for child in given.value]
        if len(numbers) != 2 or not all(_is_number(n, kind) for n in numbers):
            what = "integers" if kind == "int" else "numbers"
            text = f"expected [LOW, HIGH], two {what}, got {spell(plain(given))}"
            self._report(given.place, where, text)
            return None
        # A bound that is no value of its path says so; that covers integers under `uniform` too.
        probes = given.value if kind == "int" else [_halfway(given)]
        if kind == "log_uniform" and float(numbers[0]) <= 0:  # type: ignore[arg-type]
            probes = []
        before = len(self._problems)
        for probe in probes:
            self._parsed(path, probe, where)
        if len(self._problems) > before:
            return None
        low, high = numbers
        if kind == "int":
            step = self._integer(parts.get("step"), f"{where}.step", 1, MAX_SEED, 1)
            return self._built(
                given.place,
                where,
                lambda: Integer(low=low, high=high, step=step),  # type: ignore[arg-type]
            )
        count = self._integer(parts.get("values"), f"{where}.values", 2, MAX_GRID, None)
        return self._built(
            given.place,
            where,
            lambda: Real(
                low=float(low),  # type: ignore[arg-type]
                high=float(high),  # type: ignore[arg-type]
                is_log=kind == "log_uniform",
                num_values=count,
            ),
        )

    def _built(
        self, place: Place, where: str, build: Callable[[], Distribution]
    ) -> Distribution | None:
        try:
            return build()
        except ValueError as error:
            self._report(place, where, str(error))
            return None

    def _parsed(self, path: str, node: Node, where: str) -> Any:
        try:
            value = parse_value(path, plain(node))
        except (PathError, ValueError) as error:
            self._report(node.place, where, str(error))
            return None
        return plain(node) if isinstance(value, Law) else value

    def _when(self, node: Node | None, where: str) -> dict[str, tuple[Any, ...]]:
        parts = None if node is None else self._mapping(node, f"{where}.when")
        conditions: dict[str, tuple[Any, ...]] = {}
        for path, child in (parts or {}).items():
            self._places.setdefault(f"{where}.when", child.place)
            value = plain(child)
            conditions[path] = tuple(value) if isinstance(value, list) else (value,)
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
                self._report(self._places[path], f"search.space.{path}", text)
                break
            ordered.append(ready[0])
            waiting.remove(ready[0])
        return ordered

    def _check_parents(self, parameters: Sequence[Parameter]) -> None:
        known = {parameter.path: parameter for parameter in parameters}
        for path in known:
            law_path = ALPHA_PATHS.get(path)
            if law_path in known and law_path in self._places and path in self._places:
                given_twice = not known[path].when
                if given_twice:
                    text = f"{law_path} is in the space; write the alpha there"
                    self._report(self._places[path], f"search.space.{path}", text)
        for parameter in parameters:
            where = f"search.space.{parameter.path}"
            place = self._places.get(f"{where}.when", self._places[parameter.path])
            for path, values in parameter.when.items():
                parent = known.get(path)
                if parent is None:
                    text = f"its parent {path!r} is not in the space{did_you_mean(path, known)}"
                    self._report(place, f"{where}.when", text)
                elif not isinstance(parent.distribution, Categorical):
                    self._report(place, f"{where}.when", f"its parent {path!r} has no choices")
                else:
                    choices = parent.distribution.choices
                    for value in values:
                        if value not in choices:
                            listed = ", ".join(map(str, choices))
                            text = f"{value!r} is no choice of {path!r}: {listed}"
                            self._report(place, f"{where}.when", text)

    def _check_corners(self, space: Space) -> TrainConfig | None:
        """Return the configuration that points start from, if every extreme of the space can be."""
        for values in space.corners():
            settings = dict(self._fixed)
            for path, value in values.items():
                where = f"search.space.{path}"
                place = self._places[path]
                if path in ALPHA_PATHS and (
                    ALPHA_PATHS[path] in values or ALPHA_PATHS[path] in self._fixed
                ):
                    settings[ALPHA_PATHS[path]] = Setting(
                        value=Beta(alpha=value), place=place, where=where
                    )
                elif path in LAW_PATHS:
                    law = Beta(alpha=1.0) if value == "beta" else parse_law(value)
                    settings[path] = Setting(value=law, place=place, where=where)
                else:
                    settings[path] = Setting(value=value, place=place, where=where)
            self._configure(settings)
        return self._configure(self._fixed)


def search_schema(paths: Sequence[str]) -> dict[str, Any]:
    """Return the JSON Schema of the section `search`.

    Args:
        paths: Dotted paths that may be searched.
    """
    number = {"type": "number"}
    when = {
        "description": "Exists only where an earlier parameter has this value, or one of these.",
        "type": "object",
        "minProperties": 1,
    }

    def kind(name: str, given: Mapping[str, Any], **options: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "type": "object",
            "additionalProperties": False,
            "required": [name],
            "properties": {name: given, "when": when, **options},
        }

    def bounds(of: Mapping[str, Any]) -> dict[str, Any]:
        return {"type": "array", "items": of, "minItems": 2, "maxItems": 2}

    count = {"description": "Values of a grid.", "type": "integer", "minimum": 2}
    ranges = [
        kind("log_uniform", bounds({"type": "number", "exclusiveMinimum": 0}), values=count),
        kind("uniform", bounds(number), values=count),
        kind("int", bounds({"type": "integer"}), step={"type": "integer", "minimum": 1}),
    ]

    def chosen(item: Mapping[str, Any]) -> dict[str, Any]:
        return kind("categorical", {"type": "array", "items": item, "minItems": 1})

    def distribution(path: str) -> dict[str, Any]:
        return {"oneOf": [*ranges, chosen(schema_of(path))]}

    alpha = {"oneOf": [*ranges, chosen(number), {"type": "number", "exclusiveMinimum": 0}]}
    beta = {
        "type": "object",
        "properties": {"beta": alpha},
        "required": ["beta"],
        "additionalProperties": False,
    }
    law = {"oneOf": [beta, chosen({"oneOf": [{"enum": ["erm", "midpoint"]}, beta]})]}
    searched = [path for path in paths if path not in FIXED]
    seed = {"type": "integer", "minimum": 0, "maximum": MAX_SEED}
    limit = {"type": "number", "exclusiveMinimum": 0}
    objective = {"enum": list(OBJECTIVES)}
    return {
        "description": "A space that Optuna searches beside the arms, on validation images alone.",
        "type": "object",
        "additionalProperties": False,
        "required": ["space", "objective"],
        "properties": {
            "space": {
                "description": "Dotted path to the values it may take.",
                "type": "object",
                "minProperties": 1,
                "additionalProperties": False,
                "properties": {
                    path: law if path in LAW_PATHS else distribution(path) for path in searched
                },
            },
            "points": {
                "description": "Points to try; a grid takes all of its own.",
                "type": "integer",
                "minimum": 1,
                "maximum": MAX_POINTS,
            },
            "objective": {
                "description": "Minimised; several give a Pareto front.",
                "oneOf": [
                    objective,
                    {"type": "array", "items": objective, "minItems": 1, "uniqueItems": True},
                ],
            },
            "sampler": {"enum": list(get_args(SamplerName)), "default": "tpe"},
            "seed": {"description": "Of the sampler.", "type": "integer", "minimum": 0},
            "prune": {
                "description": "Seeds after which a point clearly worse than the best is left.",
                "type": "object",
                "additionalProperties": False,
                "required": ["after"],
                "properties": {"after": {"type": "integer", "minimum": 2}},
            },
            "budget": {
                "description": "When no more points are asked for.",
                "type": "object",
                "additionalProperties": False,
                "properties": {"hours": limit, "gpu_hours": limit},
            },
            "select": {
                "description": "How the point to confirm is chosen.",
                "enum": list(get_args(SelectionRule)),
                "default": "val-mean",
            },
            "confirm": {
                "description": "Trains the winner and the arms on train + val, tests them once.",
                "type": "object",
                "additionalProperties": False,
                "required": ["seeds"],
                "properties": {
                    "seeds": {"type": "array", "items": seed, "minItems": 1, "uniqueItems": True}
                },
            },
        },
    }


def _is_number(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return False
    return isinstance(value, int) if kind == "int" else isinstance(value, int | float)


def _halfway(bounds: Node) -> Node:
    """Return a number between two bounds that is no integer, to try a path's type with."""
    assert isinstance(bounds.value, list)
    low, high = (float(child.value) for child in bounds.value)  # type: ignore[arg-type]
    halfway = (low + high) / 2
    return Node(
        value=halfway + 1e-6 * max(1.0, abs(halfway)) * halfway.is_integer(), place=bounds.place
    )


def _nearest_kind(parts: Mapping[str, Node]) -> str:
    return "".join(did_you_mean(key, KINDS) for key in list(parts)[:1])
