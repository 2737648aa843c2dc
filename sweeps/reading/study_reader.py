"""StudyReader: from a tree of YAML nodes to a checked study, collecting every problem."""

import itertools
import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mixup_core.images.config import TrainConfig
from mixup_core.images.data.catalog import DataError
from mixup_core.images.problem import IMAGES, ImageData
from mixup_core.keys import run_key
from mixup_core.problem import MAX_SEED, Config
from sweeps.reading.arm_names import ARM_NAME, MAX_NAME, arm_name
from sweeps.reading.config_paths import (
    ALPHA_PATHS,
    GROUPS,
    REQUIRED,
    RESERVED,
    TYPES,
    Fault,
    PathError,
    Setting,
    Settings,
    check_path,
    did_you_mean,
    join,
    parse_value,
)
from sweeps.reading.node_reader import NodeReader
from sweeps.reading.search_reader import SearchReader
from sweeps.reading.strict_yaml import (
    REFUSED,
    Node,
    Place,
    Problem,
    Refused,
    holds_refused,
    plain,
    spell,
    write_yaml,
)
from sweeps.search import Search, confirming
from sweeps.study import Study

MAX_RUNS = 10_000
"""Runs of a study, seeds included: a larger one is a slip, and would take long to refuse later."""

KEYS = ("study", "description", "base", "arms", "grid", "search", "seeds")
REQUIRED_KEYS = ("study", "base", "seeds")
STUDY_NAME = r"[a-z0-9][a-z0-9-]{0,99}"
_INVISIBLE = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]"
)


class StudyReader:
    """Turns a tree of nodes into a study, collecting problems; what is wrong is left out."""

    def __init__(self, folder: Path, problems: list[Problem]) -> None:
        """Make a reader.

        Args:
            folder: Where relative image folders count from.
            problems: What was found before; what is found from here on is appended.
        """
        self._read = NodeReader(problems)
        self._data = ImageData()
        self._folder = folder
        self._searches = False

    def study(self, root: Node) -> Study | None:
        """Return the study of a tree; None if there was a problem."""
        if root.value is None:
            self._read.report(root.place, "", "file is empty")
            return None
        sections = self._read.mapping(root, "")
        if sections is None:
            return None
        self._read.only(sections, KEYS, "")
        for key in REQUIRED_KEYS:
            if key not in sections:
                self._read.report(root.place, "", f"missing key {key!r}")
        name = self._read.text(sections.get("study"), "study", "a name")
        if name is not None and not re.fullmatch(STUDY_NAME, name):
            text = f"must be a-z, 0-9 and -, not first a -, at most 100, got {name!r}"
            self._read.report(sections["study"].place, "study", text)
        description = self._description(sections.get("description"))
        seeds = self._seeds(sections.get("seeds"))
        self._searches = "search" in sections
        arms = self._arms(sections, seeds)
        search = self._search(sections, seeds, arms)
        if self._read.problems:
            return None
        return Study(
            name=name or "",
            description=description,
            arms=arms,
            seeds=tuple(seeds),
            baseline="erm" if "erm" in arms else next(iter(arms)),
            source=write_yaml({key: plain(sections[key]) for key in KEYS if key in sections}),
            search=search,
        )

    def _search(
        self, sections: Mapping[str, Node], seeds: Sequence[int], arms: Mapping[str, TrainConfig]
    ) -> Search | None:
        node = sections.get("search")
        if node is None:
            return None
        if "grid" in sections:
            text = "a study has a grid or a search; a search with `sampler: grid` is both"
            self._read.report(sections["grid"].place, "grid", text)
        if "arms" not in sections:
            text = "a search needs `arms`, the baselines that its points are compared with"
            self._read.report(node.place, "search", text)
        base = sections.get("base", node)
        settings = self._base(base, "") if "base" in sections else {}

        def configure(values: Settings) -> TrainConfig | None:
            return self._config((values, settings), base.place)

        few = seeds[: MAX_RUNS + 1]  # a study of more is refused, and such a range has no length
        search = SearchReader(self._read, configure).search(node, few)
        if search is None:
            return None
        num_runs = (len(arms) + search.points) * len(seeds)
        num_runs += (len(arms) + 1) * len(search.confirm_seeds)
        if num_runs > MAX_RUNS:
            text = f"the search has up to {num_runs:,} runs; the cap is {MAX_RUNS:,}"
            self._read.report(node.place, "search", text)
        if search.confirm_seeds:
            for config in (search.base, *arms.values()):
                self._check_confirming(config, node.place)
        return search

    def _check_confirming(self, config: Config, place: Place) -> None:
        """Report what stands against training on train + val and testing."""
        for fault in IMAGES.feasibility(confirming(config)):
            self._read.report(place, "search.confirm", f"on train + val: {fault}")

    def _description(self, node: Node | None) -> str:
        text = self._read.text(node, "description", "text") or ""
        if node is not None and _INVISIBLE.search(text):
            rule = "control and text-direction characters are not allowed"
            self._read.report(
                node.place, "description", f"{rule}, got {_INVISIBLE.findall(text)[0]!a}"
            )
        if node is not None and not unicodedata.is_normalized("NFC", text):
            self._read.report(node.place, "description", "must be in Unicode normal form C")
        return text

    def _seeds(self, node: Node | None) -> Sequence[int]:
        """Return the seeds; a count stays a range, so that a huge one costs nothing."""
        if node is None or isinstance(node.value, Refused):
            return ()
        match node.value:
            case list(nodes) if nodes:
                return self._listed_seeds(nodes)
            case int(count) if not isinstance(count, bool) and count >= 1:
                return range(count)
            case list() | 0:
                text = "needs at least one"
            case _:
                text = "expected a number of seeds or a list of seeds"
        self._read.report(node.place, "seeds", f"{text}, got {spell(plain(node))}")
        return ()

    def _listed_seeds(self, nodes: Sequence[Node]) -> Sequence[int]:
        seeds: list[int] = []
        rule = "seeds are distinct integers in 0..2^63-1"
        for index, node in enumerate(nodes):
            seed, path = node.value, f"seeds[{index}]"
            if isinstance(seed, Refused):
                continue
            if not isinstance(seed, int) or isinstance(seed, bool) or not 0 <= seed <= MAX_SEED:
                self._read.report(node.place, path, f"{rule}, got {spell(plain(node))}")
            elif seed in seeds:
                self._read.report(node.place, path, f"{rule}, got {seed} twice")
            else:
                seeds.append(seed)
        return tuple(seeds)

    def _arms(
        self, sections: Mapping[str, Node], seeds: Sequence[int]
    ) -> Mapping[str, TrainConfig]:
        """Return every arm, grid points included, in the order of the file."""
        base = sections.get("base")
        settings = {} if base is None else self._base(base, "")
        overrides = self._overrides(sections.get("arms"))
        axes = self._axes(sections.get("grid"), overrides)
        num_seeds = seeds.stop if isinstance(seeds, range) else len(seeds)
        num_arms = len(overrides) * math.prod(map(len, axes.values()))
        num_runs = num_arms * num_seeds
        if num_runs > MAX_RUNS:
            key = "grid" if axes else "seeds"
            text = f"the study has {num_runs:,} runs; the cap is {MAX_RUNS:,}"
            self._read.report(sections[key].place, key, text)
        if base is None or num_arms > MAX_RUNS:
            return {}
        arms: dict[str, TrainConfig] = {}
        names: dict[str, str] = {}
        for arm, override in overrides.items():
            for values in itertools.product(*axes.values()):
                point = dict(zip(axes, values, strict=True))
                config = self._config((point, override, settings), base.place)
                if config is None:
                    continue
                name = arm_name(arm if "arms" in sections or not axes else "", point)
                given = [*point.values(), *override.values()]
                place = given[0].place if given else sections.get("arms", base).place
                key = run_key(config)
                if key in names:
                    text = f"arms {names[key]!r} and {name!r} are the same run"
                    self._read.report(place, "arms", text)
                elif name in arms:
                    self._read.report(place, "arms", f"two grid points are named {name!r}")
                elif len(name) > MAX_NAME:
                    self._read.report(place, "arms", f"at most {MAX_NAME} characters, got {name!r}")
                arms[name] = config
                names[key] = name
        return arms

    def _base(self, node: Node, prefix: str) -> dict[str, Setting]:
        section = f"base.{prefix}".rstrip(".")
        parts = self._read.mapping(node, section)
        if parts is None:
            refused = Setting(value=REFUSED, place=node.place, where=section)
            return {path: refused for path in TYPES if path.startswith(prefix)}
        settings: dict[str, Setting] = {}
        for key, child in parts.items():
            path = f"{prefix}{key}"
            if "." not in key and path in GROUPS:
                settings |= self._base(child, f"{path}.")
            elif "." not in key and path in TYPES:
                settings[path] = self._setting(path, child, f"base.{path}")
            else:
                self._read.report(child.place, section, _unknown_key(key, prefix))
        return settings

    def _overrides(self, node: Node | None) -> dict[str, dict[str, Setting]]:
        if node is None:
            return {"base": {}}
        arms = self._read.mapping(node, "arms")
        if arms is not None and not arms:
            self._read.report(node.place, "arms", "needs at least one")
        overrides = {}
        for name, child in (arms or {}).items():
            if not re.fullmatch(ARM_NAME, name):
                text = (
                    f"must be letters, digits, . _ - and +, first a letter or digit, got {name!r}"
                )
                self._read.report(child.place, "arms", f"{text}; at most {MAX_NAME}")
            values = self._read.mapping(child, f"arms.{name}")
            if values is not None:
                overrides[name] = {
                    path: self._setting(path, value, f"arms.{name}.{path}")
                    for path, value in values.items()
                    if self._is_path(path, value, f"arms.{name}")
                }
        return overrides

    def _axes(
        self, node: Node | None, overrides: Mapping[str, Settings]
    ) -> dict[str, list[Setting]]:
        axes = {}
        grid = None if node is None else self._read.mapping(node, "grid")
        if node is not None and grid is not None and not grid:
            self._read.report(node.place, "grid", "needs at least one path")
        for path, child in (grid or {}).items():
            where = f"grid.{path}"
            if not self._is_path(path, child, "grid") or isinstance(child.value, Refused):
                continue
            if not isinstance(child.value, list) or not child.value:
                text = f"expected a list of at least one value, got {spell(plain(child))}"
                self._read.report(child.place, where, text)
                continue
            for arm, override in overrides.items():
                if any(_law_path(path) == _law_path(taken) for taken in override):
                    self._read.report(child.place, where, f"arm {arm!r} sets this path too")
            axes[path] = [self._setting(path, value, where) for value in child.value]
        return axes

    def _is_path(self, path: str, node: Node, section: str) -> bool:
        try:
            check_path(path)
        except PathError as error:
            self._read.report(node.place, f"{section}.{path}", str(error))
            return False
        return True

    def _setting(self, path: str, node: Node, where: str) -> Setting:
        value: Any = REFUSED
        if not holds_refused(node):
            try:
                value = parse_value(path, plain(node))
            except (PathError, ValueError) as error:
                self._read.report(node.place, where, str(error))
        return Setting(value=value, place=node.place, where=where)

    def _config(self, levels: Sequence[Settings], base: Place) -> TrainConfig | None:
        """Return the configuration of one arm.

        Args:
            levels: Grid point, arm and base; the first that gives a path decides.
            base: Place of problems that no given value causes.
        """
        given = {
            path: setting.value for level in reversed(levels) for path, setting in level.items()
        }
        if self._searches:
            self._check_blind(given, levels, base)
            given["data.test"] = False
        for path in REQUIRED:
            if path not in given:
                self._read.report(base, "base", f"missing key {path!r}")
        config, gone, faults = join(given)
        found = list(faults)
        if config is not None:
            try:
                config = self._data.prepare(config, self._folder)
                found += [
                    Fault(paths=error.fields, text=str(error))
                    for error in IMAGES.feasibility(config)
                    if gone.isdisjoint(error.fields)
                ]
            except DataError as error:
                found.append(Fault(paths=("data.folder", "data.name"), text=str(error)))
        for fault in found:
            self._report_fault(fault, levels, base)
        return None if gone or found else config

    def _check_blind(
        self, given: Mapping[str, Any], levels: Sequence[Settings], base: Place
    ) -> None:
        """Report what would let a search see test images, or leave it without validation images."""
        if given.get("data.test") is True:
            text = "must be false in a search, which never sees test images; leave it out"
            self._report_fault(Fault(paths=("data.test",), text=text), levels, base)
        if given.get("data.val_size", 0) == 0:
            text = "`val_size >= 1` must hold in a search: it is judged on images held out."
            self._report_fault(Fault(paths=("data.val_size",), text=text), levels, base)

    def _report_fault(self, fault: Fault, levels: Sequence[Settings], base: Place) -> None:
        """Report a fault at the most special of the values that it concerns."""
        for level, path in itertools.product(levels, fault.paths):
            setting = level.get(path) or level.get(f"{path}.alpha")
            if setting is not None:
                self._read.report(setting.place, setting.where, fault.text)
                return
        self._read.report(base, f"base.{fault.paths[0]}", fault.text)


def _unknown_key(key: str, prefix: str) -> str:
    path = f"{prefix}{key}"
    if path in RESERVED:
        return f"{key!r} {RESERVED[path]}"
    if path in TYPES or path in GROUPS:
        return f"unknown key {key!r}; base is nested, write {path.replace('.', ': {', 1)}: ...}}"
    known = [name.removeprefix(prefix) for name in TYPES if name.startswith(prefix)]
    siblings = {name.partition(".")[0]: None for name in known}
    hint = did_you_mean(key, siblings) or did_you_mean(path, TYPES)
    return f"unknown key {key!r}{hint}"


def _law_path(path: str) -> str:
    return ALPHA_PATHS.get(path, path)
