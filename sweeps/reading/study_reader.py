"""StudyReader: turn the content of a study file into a checked study, collecting every fault."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from mixup_core.config.written_forms import flatten
from mixup_core.keys import run_key
from mixup_core.problem import (
    DEFAULT_PROBLEM,
    PROBLEMS,
    Config,
    DataError,
    KnownData,
    problem_named,
    with_named_teacher,
)
from mixup_core.rules import RuleError
from sweeps.reading.claims_reader import ClaimsReader
from sweeps.reading.grid_reader import ARM_NAME, MAX_NAME, GridReader, arm_name, coded_values
from sweeps.reading.search_reader import SearchReader
from sweeps.reading.strict_yaml import REFUSED, At, Document, dotted, write_yaml
from sweeps.reading.study_keys import StudyKeys
from sweeps.reading.tree_paths import Settings, TreePaths, config_paths
from sweeps.reading.tree_reader import TreeReader
from sweeps.study.budget import Budget
from sweeps.study.claims import UntilDecided
from sweeps.study.search import Search, confirming
from sweeps.study.study import Study

MAX_RUNS = 100_000
"""Largest number of runs of a study (arms times seeds); more runs are reported as a mistake."""

MAX_STAGES = 2_000_000
"""Largest number of epochs of all runs together, such as 10,000 runs of 200 epochs. Planning
computes one stage key for each epoch."""

KEYS: Final = TreePaths(StudyKeys)


def paths_of(study: Mapping[str, Any]) -> TreePaths:
    """Return the paths of the problem that the content of a study file names, or of the default."""
    problem = study.get("problem")
    name = problem if isinstance(problem, str) and problem in PROBLEMS else DEFAULT_PROBLEM
    return config_paths(problem_named(name))


class StudyReader:
    """Turns the content of a study file into a `Study`; faulty parts are reported and skipped."""

    def __init__(
        self,
        document: Document,
        folder: Path,
        known: Callable[[str], KnownData] | None = None,
        *,
        only_known: bool = False,
    ) -> None:
        self._written = document.value
        self._read = TreeReader(document, KEYS, self._of_base)
        self._folder = folder.absolute()
        self._known, self._only_known = known, only_known
        self._listed: dict[str, str] = {}
        """Name of each arm in the file, by its name with the values of its grid point."""

    def _of_base(self) -> dict[str, str]:
        """Return, for a field written outside `base`, its right path: `base.epochs` by `epochs`."""
        paths = paths_of(self._written)
        all_paths = [*paths.groups, *paths.leaves]
        tails = {path.rpartition(".")[2]: f"base.{path}" for path in reversed(all_paths)}
        names = {name: f"base.{path}" for name, path in paths.other_names.items()}
        return tails | names | {path: f"base.{path}" for path in all_paths}

    def study(self) -> Study | None:
        """Return the study that the file describes; None if it has faults, which are reported."""
        if self._written is None:
            self._read.report((), "file is empty")
            return None
        keys, gone = self._read.section(self._written, ())
        if keys is None or "problem" in gone:
            return None
        self._problem = problem_named(keys.problem)
        self._read = TreeReader(self._read.document, config_paths(self._problem))
        self._codes: dict[str, str] = {}
        self._needs = None if self._problem.data is None else self._problem.data()
        if self._needs is not None and self._known is not None:
            self._needs.recall(partial(self._known, keys.study), only=self._only_known)
        seeds = keys.listed_seeds()
        self._num_seeds = seeds.stop - seeds.start if isinstance(seeds, range) else len(seeds)
        self._seeds = seeds[: MAX_RUNS + 1]  # a range may be too long for `len`, or for memory
        arms = self._arms()
        search = self._search(arms)
        sound_arms = None if self._read.faults else arms
        default = "erm"
        if default not in arms:
            # Without an arm of this name, its first grid point; without those, the first arm.
            grid_points = (name for name in arms if self._listed[name] == default)
            default = next(grid_points, next(iter(arms), ""))
        fresh = () if search is None else search.strategy.confirm_seeds
        reader = ClaimsReader(
            read=self._read,
            problem=self._problem,
            arms=sound_arms,
            listed=self._listed,
            fitted=self._fitted,
            readout=keys.readout,
            seeds=fresh or self._seeds,
            is_searched=search is not None,
            is_confirmed=bool(fresh),
            has_looks=isinstance(keys.seeds, UntilDecided),
        )
        if keys.baseline is not None:
            reader.check_arm(("baseline",), keys.baseline)
        references = reader.references(self._written.get("references", REFUSED))
        untrained = reader.untrained(self._written.get("untrained", REFUSED))
        if keys.headline is not None:
            reader.check_headline(("headline",), keys.headline)
        else:
            reader.check_default_headline()
        reader.check_equivalence(keys.equivalence, keys.headline or self._problem.headline[0])
        reader.check_readout(("readout",), keys.readout)
        claims = reader.claims(self._written.get("claims", REFUSED))
        if self._read.faults:
            return None
        variants, extra_arms = reader.variants(self._written.get("sensitivity", REFUSED), claims)
        self._check_teachers(extra_arms, arms)
        points = [] if search is None else [*map(search.config_of, search.space.corners())]
        extra_arms |= self._teachers(arms, [*arms.values(), *extra_arms.values(), *points])
        self._check_confirmation([*points, *arms.values(), *extra_arms.values()], fresh)
        num_seeds = len(self._seeds)
        epochs = [config.epochs for config in (*arms.values(), *extra_arms.values())]
        self._check_size("sensitivity", len(epochs) * num_seeds, sum(epochs) * num_seeds)
        if self._read.faults:
            return None
        return Study(
            name=keys.study,
            description=keys.description,
            arms={**arms, **extra_arms},
            variants=variants,
            beside=tuple(extra_arms),
            seeds=tuple(self._seeds),
            source=write_yaml({k: self._written[k] for k in KEYS.leaves if k in self._written}),
            baseline=keys.baseline or default,
            search=search,
            readout=keys.readout,
            lead=keys.headline,
            claims=claims,
            references=references,
            untrained=untrained,
            differs=keys.differs,
            equivalence=keys.equivalence,
            budget=keys.budget or Budget(),
            until=keys.seeds if isinstance(keys.seeds, UntilDecided) else None,
            folder=str(self._folder),
            plugins=keys.plugins,
            codes=self._codes,
        )

    def _arms(self) -> dict[str, Config]:
        """Return the configuration of every arm at every grid point, by name, in file order."""
        base = self._written.get("base", REFUSED)
        self._base = self._read.nested(base, ("base",))
        self._overrides = self._arm_settings() if "arms" in self._written else {"base": {}}
        grid = GridReader(self._read, self._written, self._overrides)
        num_arms = len(self._overrides) * grid.num_points
        num_seeds = self._num_seeds
        self._check_size("grid" if grid.num_points > 1 else "seeds", num_arms * num_seeds)
        if num_arms > MAX_RUNS:
            return {}
        arms = self._distinct(list(self._named(grid)))
        if not self._read.faults:
            self._check_teachers(arms, arms)
        if base is not REFUSED:
            grid.report_unmet()
        if not arms and not self._read.faults:
            self._read.report(("exclude",), "leaves out every arm, so nothing is left to train")
        if num_arms * num_seeds <= MAX_RUNS:
            self._check_size("base", 0, num_seeds * sum(config.epochs for config in arms.values()))
        return arms

    def _distinct(self, entries: Sequence[tuple[str, str, Config, At]]) -> dict[str, Config]:
        """Return configurations by name; report arms with equal configurations or equal names."""
        arms: dict[str, Config] = {}
        names: dict[str, str] = {}
        altered = self._altered()
        for arm, name, config, at in entries:
            key = run_key(with_named_teacher(config))
            if arm in altered:
                key = f"{key} without the settings of {name} that were refused"
            elif key in names:
                self._read.report(at, f"arms {names[key]!r} and {name!r} are the same run")
            elif name in arms:
                self._read.report(at, f"two grid points have the same name {name!r}")
            elif len(name) > MAX_NAME:
                rule = f"an arm's name has at most {MAX_NAME} characters"
                self._read.report(at, f"{rule}, got {name!r}")
            arms[name] = config
            names[key] = name
            self._listed[name] = arm
        return arms

    def _altered(self) -> frozenset[str]:
        """Return the arms that lack a setting of the file, because it was refused."""
        places = {arm: {dotted(("arms", arm)), "base", "grid", "zip"} for arm in self._overrides}
        refused = {fault.path for fault in self._read.faults}
        above = {path[: end.start()] for path in refused for end in re.finditer(r"[.\[]|$", path)}
        return frozenset(arm for arm, paths in places.items() if not paths.isdisjoint(above))

    def _named(self, grid: GridReader) -> Iterator[tuple[str, str, Config, At]]:
        """Yield each valid arm at each grid point: arm, name, configuration, place in the file."""
        points = list(self._points(grid))
        num_points = Counter(arm for arm, *_ in points)
        for arm, values, config, at in points:
            if "arms" not in self._written:
                yield arm, arm_name("" if values else arm, values), config, at
            else:
                is_alone = num_points[arm] == 1 < grid.num_points
                yield arm, arm if is_alone else arm_name(arm, values), config, at

    def _points(self, grid: GridReader) -> Iterator[tuple[str, Mapping[str, Any], Config, At]]:
        """Yield each valid arm at each grid point: arm, grid values, configuration, place."""
        listed = "arms" if "arms" in self._written else "base"
        for arm, override in self._overrides.items():
            for point in grid.points():
                levels = (point, override, self._base)
                if grid.is_left_out(self._read.paths.merged(levels)):
                    continue
                config = self._config(levels)
                if config is not None:
                    values = {path: setting.value for path, setting in point.items()}
                    self._codes |= coded_values(values)
                    places = [setting.at for setting in (*point.values(), *override.values())]
                    yield arm, values, config, [*places, (listed,)][0]

    def _arm_settings(self) -> dict[str, Settings]:
        arms = self._read.mapping(self._written["arms"], ("arms",))
        if self._written["arms"] == {}:
            self._read.report(("arms",), "needs at least one arm")
        for name in (name for name in arms if not re.fullmatch(ARM_NAME, name)):
            rule = "must have only letters, digits, `.`, `_`, `-` and `+`, begin with a letter or "
            rule += f"digit, and have at most {MAX_NAME} characters"
            self._read.report(("arms", name), f"{rule}, got {name!r}")
        return {
            name: self._read.nested(override, ("arms", name), is_dotted=True)
            for name, override in arms.items()
        }

    def _check_teachers(self, configs: Mapping[str, Config], arms: Mapping[str, Config]) -> None:
        """Report each arm that learns from itself, an unknown arm, or an unsuitable one."""
        teaching = self._problem.teaching
        teachers = {} if teaching is None else {k: teaching.arm(c) for k, c in configs.items()}
        for name, teacher in teachers.items():
            chain = [name]
            while (following := teachers.get(chain[-1])) is not None and following not in chain:
                chain.append(following)
            if teaching is None or teacher is None:
                continue
            arm_in_file = self._listed.get(name)  # None for a point of the search
            at = () if arm_in_file is None or "arms" not in self._written else ("arms", arm_in_file)
            if following is not None:
                chain.append(following)
                self._read.report(at, f"{name} learns from itself: {' <- '.join(chain)}")
            elif teacher not in arms:
                text = f"the teacher of {name} must be an arm of the study, got {teacher!r}"
                self._read.report(at, text, teacher, arms)
            else:
                for error in teaching.unfit(configs[name], arms[teacher]):
                    self._read.report(at, f"{name} cannot learn from {teacher!r}: {error}")

    def _check_confirmation(self, configs: Sequence[Config], seeds: Sequence[int]) -> None:
        """Report a rule that the confirmation of a search would break at its seeds, if any."""
        unfit = self._problem.reading.unfit
        errors = (e for config in configs if seeds for e in unfit(confirming(config), seeds))
        if error := next(errors, None):
            text = "confirm: the confirmation runs also use the held-out data, and then"
            self._read.report(("search",), f"{text} {error}")

    def _teachers(self, arms: Mapping[str, Config], learners: list[Config]) -> dict[str, Config]:
        """Return the runs to train as teachers that are not arms of the file, as arms, by name."""
        teaching = self._problem.teaching
        keys = {run_key(with_named_teacher(config)) for config in arms.values()}
        teachers: dict[str, Config] = {}
        for config in learners:
            arm = None if teaching is None else teaching.arm(config)
            if teaching is None or arm is None:
                continue
            teacher = teaching.apart(arms[arm], config)
            if (key := run_key(with_named_teacher(teacher))) not in keys:
                keys.add(key)
                settings = flatten(arms[arm])
                changed = {p: v for p, v in flatten(teacher).items() if settings.get(p) != v}
                teachers[arm_name(arm, changed)] = teacher
                learners.append(teacher)
        return teachers

    def _check_size(self, key: str, num_runs: int, num_stages: int = 0) -> None:
        """Report a study that has more runs, or more epochs of all runs together, than allowed."""
        for num, cap, what in ((num_runs, MAX_RUNS, "runs"), (num_stages, MAX_STAGES, "epochs")):
            if num > cap:
                text = f"the study has {num:,} {what} in all; at most {cap:,} are allowed"
                self._read.report((key,) if key in self._written else (), text)
                return

    def _config(self, levels: Sequence[Settings]) -> Config | None:
        """Return the configuration that several levels of settings describe; None on a fault."""
        config, gone = self._read.joined(levels, ("base",))
        if config is None:
            return None
        config, errors = self._prepared(config, levels)
        errors = [error for error in errors if gone.isdisjoint(error.fields)]
        for error in errors:
            self._read.blame(error, levels, ("base",))
        prepared: Config | None = None if gone or errors else config
        return prepared

    def _prepared(
        self, config: Any, levels: Sequence[Settings]
    ) -> tuple[Any, list[RuleError | DataError]]:
        """Return the configuration as it will be trained, and the errors that prevent that."""
        errors: list[RuleError | DataError] = []
        try:
            if "search" in self._written and self._problem.searching.held_out is not None:
                before, config = flatten(config), self._problem.searching.held_out.hidden(config)
                after, hint = flatten(config), "the search sets this field, leave it out"
                set_paths = self._read.paths.merged(levels).keys() & before.keys()
                errors += [
                    RuleError(
                        f"{p} must be {after.get(p)!r} in a search", {p: before[p]}, hint=hint
                    )
                    for p in before if p in set_paths and before[p] != after.get(p)
                ]  # fmt: skip
        except RuleError as error:
            errors.append(error)
        fitted, more = self._fitted(config)
        return fitted, errors + more

    def _fitted(self, config: Any) -> tuple[Any, list[RuleError | DataError]]:
        """Return a configuration with the facts of its data, and why its runs would fail on it."""
        errors: list[RuleError | DataError] = []
        try:
            if self._needs is not None:
                config = self._needs.prepare(config, self._folder)
            errors += self._problem.reading.unfit(config, self._seeds)
        except (RuleError, DataError) as error:
            errors.append(error)
        return config, errors

    def _search(self, arms: Mapping[str, Config]) -> Search | None:
        if "search" not in self._written:
            return None
        for key in {"grid", "zip", "exclude"} & self._written.keys():
            text = "a study cannot have both a grid and a search; to search a grid, set "
            text += "`sampler: grid` in the search"
            self._read.report((key,), text)
        if "arms" not in self._written:
            text = "a search needs `arms`, with which its points are compared"
            self._read.report(("search",), text)
        reader = SearchReader(
            self._read.document,
            self._problem,
            given={path for override in self._overrides.values() for path in override},
            configure=lambda values: self._config((values, self._base)),
        )
        search = reader.search(self._written["search"], self._seeds)
        if search is None:
            return None
        num_confirming = (len(arms) + 1) * len(search.strategy.confirm_seeds)
        num_runs = (len(arms) + search.points) * len(self._seeds) + num_confirming
        corners = [search.config_of(values) for values in search.space.corners()]
        longest = max(config.epochs for config in (*corners, *arms.values()))
        self._check_teachers({f"a point ({n})": config for n, config in enumerate(corners)}, arms)
        self._check_size("search", num_runs, num_runs * longest)
        return search
