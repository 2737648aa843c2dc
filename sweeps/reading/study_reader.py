"""StudyReader: from a tree of YAML nodes to a checked study, collecting every problem."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from mixup_core.keys import run_key
from mixup_core.problem import (
    PROBLEMS,
    Config,
    DataError,
    Problem,
    problem_named,
    with_named_teacher,
)
from mixup_core.rules import RuleError
from mixup_core.tree import flatten
from sweeps.budget import Budget
from sweeps.reading.arm_names import ARM_NAME, MAX_NAME, arm_name
from sweeps.reading.claims_reader import ClaimsReader
from sweeps.reading.grid_reader import GridReader
from sweeps.reading.node_reader import NodeReader
from sweeps.reading.search_reader import read_search
from sweeps.reading.space_reader import SpaceReader
from sweeps.reading.strict_yaml import Fault, Node, plain, write_yaml
from sweeps.reading.study_keys import StudyKeys
from sweeps.reading.tree_paths import Settings, TreePaths, config_paths
from sweeps.search import Search, confirming
from sweeps.study import Study

MAX_RUNS = 10_000
"""Runs of a study, seeds included: a larger one is a slip, and would take long to refuse later."""

MAX_STAGES = 10_000_000
"""Epochs of all runs together: each has a stage key, and planning computes all of them."""

KEYS: Final = TreePaths(StudyKeys)


class StudyReader:
    """Turns a tree of nodes into a study, collecting faults; what is wrong is left out."""

    def __init__(self, folder: Path, faults: list[Fault]) -> None:
        """Make a reader.

        Args:
            folder: Where relative folders of data count from.
            faults: What was found before; what is found from here on is appended.
        """
        self._read = NodeReader(faults)
        self._folder = folder

    def study(self, root: Node) -> Study | None:
        """Return the study of a tree; None if there was a problem."""
        if root.value is None:
            self._read.report(root, "file is empty")
            return None
        self._root, self._nodes = root, self._read.mapping(root)
        keys: StudyKeys | None = None
        if isinstance(root.value, dict):
            keys = self._read.section(KEYS, root)
        if keys is None or not self._has_problem(keys.problem):
            return None
        self._seeds = keys.listed_seeds()
        arms = self._arms()
        is_whole = not self._read.faults
        search = self._search(arms)
        named = ClaimsReader(self._read, self._problem, self._nodes, arms if is_whole else None)
        baseline, references, claims = named.baseline(keys), named.references(), named.claims()
        if self._read.faults:
            return None
        return Study(
            name=keys.study,
            description=keys.description,
            arms=arms,
            seeds=tuple(self._seeds),
            source=write_yaml({k: plain(self._nodes[k]) for k in KEYS.leaves if k in self._nodes}),
            baseline=baseline,
            search=search,
            readout=keys.readout,
            claims=claims,
            references=references,
            equivalence=keys.equivalence,
            budget=keys.budget or Budget(),
        )

    def _has_problem(self, name: str) -> bool:
        """Return whether a problem is known, and get ready to read its configurations."""
        node = self._nodes.get("problem")
        if node is not None and self._read.has_problem(node):
            return False
        if name not in PROBLEMS:
            hint = self._read.did_you_mean(name, PROBLEMS)
            text = f"expected one of {', '.join(PROBLEMS)}, got {name!r}{hint}"
            self._read.report(node or self._root, text)
            return False
        self._problem: Problem = problem_named(name)
        self._paths = config_paths(self._problem)
        self._needs = None if self._problem.data is None else self._problem.data()
        return True

    def _arms(self) -> dict[str, Config]:
        """Return every arm, grid points included, in the order of the file."""
        base, listed = self._nodes.get("base"), self._nodes.get("arms")
        self._base = {} if base is None else self._read.nested(self._paths, base)
        self._overrides = {"base": {}} if listed is None else self._arm_settings(listed)
        grid = GridReader(self._read, self._paths, self._nodes, self._overrides)
        num_arms = len(self._overrides) * grid.num_points
        num_seeds = self._seeds.stop if isinstance(self._seeds, range) else len(self._seeds)
        self._check_size("grid" if grid.num_points > 1 else "seeds", num_arms * num_seeds)
        if base is None or num_arms > MAX_RUNS:
            return {}
        arms: dict[str, Config] = {}
        names: dict[str, str] = {}
        for name, config, node in self._points(grid):
            key = run_key(with_named_teacher(config))
            if key in names:
                self._read.report(node, f"arms {names[key]!r} and {name!r} are the same run")
            elif name in arms:
                self._read.report(node, f"two grid points are named {name!r}")
            elif len(name) > MAX_NAME:
                rule = f"an arm's name has at most {MAX_NAME} characters"
                self._read.report(node, f"{rule}, got {name!r}")
            arms[name] = config
            names[key] = name
        if not self._read.faults:
            self._check_teachers(arms, arms)
        grid.report_unmet()
        if not arms and not self._read.faults:
            self._read.report(self._nodes["exclude"], "leaves out every arm")
        if num_arms * num_seeds <= MAX_RUNS:
            self._check_size("base", 0, num_seeds * sum(config.epochs for config in arms.values()))
        return arms

    def _points(self, grid: GridReader) -> Iterator[tuple[str, Config, Node]]:
        """Yield each arm at each point that can be run, with what sets it apart in the file."""
        listed = self._nodes.get("arms")
        for arm, override in self._overrides.items():
            for point in grid.points():
                levels = (point, override, self._base)
                if grid.is_left_out(self._paths.merged(levels)):
                    continue
                config = self._config(levels)
                if config is not None:
                    values = {path: setting.value for path, setting in point.items()}
                    name = arm_name("" if listed is None and point else arm, values)
                    given = [setting.node for setting in (*point.values(), *override.values())]
                    yield name, config, [*given, listed or self._nodes["base"]][0]

    def _check_teachers(self, configs: Mapping[str, Config], arms: Mapping[str, Config]) -> None:
        """Report what learns from no arm of the study, from itself, or from an unfit one."""
        teaching = self._problem.teaching
        teachers = {} if teaching is None else {k: teaching.arm(c) for k, c in configs.items()}
        listed = self._read.mapping(self._nodes.get("arms"))
        for name, teacher in teachers.items():
            chain = [name]
            while (following := teachers.get(chain[-1])) is not None and following not in chain:
                chain.append(following)
            if teaching is None or teacher is None:
                continue
            if following is not None:
                texts = [f"learns from itself: {' <- '.join([*chain, following])}"]
            elif teacher not in arms:
                hint = self._read.did_you_mean(teacher, arms)
                texts = [f"names a teacher that is no arm, got {teacher!r}{hint}"]
            else:
                unfit = teaching.unfit(configs[name], arms[teacher])
                texts = [f"cannot learn from {teacher!r}: {error}" for error in unfit]
            for text in texts:
                node = listed.get(name.partition(" ")[0], self._root)
                self._read.report(node, f"{name} {text}")

    def _check_size(self, key: str, num_runs: int, num_stages: int = 0) -> None:
        """Report more runs, or more epochs of all runs, than a study may have."""
        for num, cap, what in ((num_runs, MAX_RUNS, "runs"), (num_stages, MAX_STAGES, "epochs")):
            if num > cap:
                text = f"the study has {num:,} {what} in all; the cap is {cap:,}"
                self._read.report(self._nodes.get(key, self._root), text)
                return

    def _arm_settings(self, node: Node) -> dict[str, Settings]:
        if node.value == {}:
            self._read.report(node, "needs at least one")
        arms = self._read.mapping(node)
        for name in (name for name in arms if not re.fullmatch(ARM_NAME, name)):
            rule = "must be letters, digits, . _ - and +, first a letter or digit"
            self._read.report(arms[name], f"{rule}, at most {MAX_NAME}, got {name!r}")
        return {name: self._read.dotted(self._paths, child) for name, child in arms.items()}

    def _config(self, levels: Sequence[Settings]) -> Config | None:
        """Return the configuration of levels, the first decides; None if there was a problem."""
        base = self._nodes["base"]
        config, gone = self._read.joined(self._paths, levels, base)
        if config is None:
            return None
        config, errors = self._prepared(config, levels)
        errors = [error for error in errors if gone.isdisjoint(error.fields)]
        for error in errors:
            self._read.blame(error, levels, base)
        prepared: Config | None = None if gone or errors else config
        return prepared

    def _prepared(
        self, config: Any, levels: Sequence[Settings]
    ) -> tuple[Any, list[RuleError | DataError]]:
        """Return the configuration as it will be run, and what stands against running it."""
        errors: list[RuleError | DataError] = []
        try:
            if "search" in self._nodes and self._problem.held_out is not None:
                before, config = flatten(config), self._problem.held_out.hidden(config)
                after, hint = flatten(config), "a search sets it, leave it out"
                errors += [
                    RuleError(f"{p} is {after.get(p)!r} in a search", {p: before[p]}, hint=hint)
                    for p in self._paths.merged(levels) if p in before and before[p] != after.get(p)
                ]  # fmt: skip
        except RuleError as error:
            errors.append(error)
        try:
            if self._needs is not None:
                config = self._needs.prepare(config, self._folder)
            errors += self._problem.feasibility(config)
        except (RuleError, DataError) as error:
            errors.append(error)
        return config, errors

    def _search(self, arms: Mapping[str, Config]) -> Search | None:
        node = self._nodes.get("search")
        if node is None or "base" not in self._nodes:
            return None
        for key in {"grid", "zip", "exclude"} & self._nodes.keys():
            text = "a study has a grid or a search; a search with `sampler: grid` is both"
            self._read.report(self._nodes[key], text)
        if "arms" not in self._nodes:
            text = "a search needs `arms`, the baselines that its points are compared with"
            self._read.report(node, text)
        given = {path for override in self._overrides.values() for path in override}
        spaces = SpaceReader(
            self._read, self._paths, lambda values: self._config((values, self._base)), given
        )
        few = self._seeds[: MAX_RUNS + 1]  # a study of more is refused, and may have no length
        search = read_search(self._read, node, self._problem, few, spaces)
        if search is None:
            return None
        num_confirming = (len(arms) + 1) * len(search.confirm_seeds)
        num_runs = (len(arms) + search.points) * len(few) + num_confirming
        corners = [search.config_of(values) for values in search.space.corners()]
        longest = max(config.epochs for config in (*corners, *arms.values()))
        self._check_teachers({f"a point ({n})": config for n, config in enumerate(corners)}, arms)
        self._check_size("search", num_runs, num_runs * longest)
        for config in (search.base, *arms.values()) if search.confirm_seeds else ():
            for error in self._problem.feasibility(confirming(config)):
                self._read.report(node, f"confirm: on what was held out too: {error}")
        return search
