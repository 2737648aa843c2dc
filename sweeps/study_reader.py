"""StudyReader: from a tree of YAML nodes to a checked study, collecting every problem."""

import itertools
import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from mixup_core.catalog import DataError, DatasetInfo
from mixup_core.config import MAX_SEED, DataConfig, TrainConfig, run_key
from mixup_core.folders import describe, folder_digest
from mixup_core.laws import Beta, Erm, Midpoint, spell_law
from sweeps.config_paths import (
    ALPHA_PATHS,
    GROUPS,
    REQUIRED,
    RESERVED,
    TYPES,
    Fault,
    PathError,
    Setting,
    check_path,
    did_you_mean,
    join,
    parse_value,
)
from sweeps.feasibility import infeasible
from sweeps.search import Search, confirming
from sweeps.search_reader import SearchReader, Settings
from sweeps.strict_yaml import (
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
from sweeps.study import Study

MAX_RUNS = 10_000
"""Runs of a study, seeds included: a larger one is a slip, and would take long to refuse later."""

MAX_NAME = 100
"""Characters of a study or an arm, grid values included."""

KEYS = ("study", "description", "base", "arms", "grid", "search", "seeds")
REQUIRED_KEYS = ("study", "base", "seeds")
STUDY_NAME = r"[a-z0-9][a-z0-9-]{0,99}"
ARM_NAME = r"[A-Za-z0-9][A-Za-z0-9._+-]{0,99}"
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
        self._problems = problems
        self._folder = folder
        self._known_data: dict[DataConfig, tuple[DataConfig, DatasetInfo] | str] = {}
        self._searches = False

    def _report(self, place: Place, path: str, text: str) -> None:
        self._problems.append(Problem(place=place, path=path, text=text))

    def study(self, root: Node) -> Study | None:
        """Return the study of a tree; None if there was a problem."""
        if root.value is None:
            self._report(root.place, "", "file is empty")
            return None
        sections = self._mapping(root, "")
        if sections is None:
            return None
        for key, node in sections.items():
            if key not in KEYS:
                self._report(node.place, "", f"unknown key {key!r}{did_you_mean(key, KEYS)}")
        for key in REQUIRED_KEYS:
            if key not in sections:
                self._report(root.place, "", f"missing key {key!r}")
        name = self._text(sections.get("study"), "study", "a name")
        if name is not None and not re.fullmatch(STUDY_NAME, name):
            text = f"must be a-z, 0-9 and -, not first a -, at most 100, got {name!r}"
            self._report(sections["study"].place, "study", text)
        description = self._description(sections.get("description"))
        seeds = self._seeds(sections.get("seeds"))
        self._searches = "search" in sections
        arms = self._arms(sections, seeds)
        search = self._search(sections, seeds, arms)
        if self._problems:
            return None
        return Study(
            name=name or "",
            description=description,
            arms=arms,
            seeds=tuple(seeds),
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
            self._report(sections["grid"].place, "grid", text)
        if "arms" not in sections:
            text = "a search needs `arms`, the baselines that its points are compared with"
            self._report(node.place, "search", text)
        base = sections.get("base")
        if base is None or self._problems:
            return None  # its corners would repeat what was said of the base
        settings = self._base(base, "")
        if len(seeds) * len(arms) > MAX_RUNS:
            return None

        def configure(values: Settings) -> TrainConfig | None:
            return self._config((values, settings), base.place)

        search = SearchReader(self._problems, configure).search(node, seeds)
        if search is not None and search.confirm_seeds:
            for config in (search.base, *arms.values()):
                self._check_confirming(config, node.place)
        return search

    def _check_confirming(self, config: TrainConfig, place: Place) -> None:
        """Report what stands against training on train + val and testing."""
        confirmed = confirming(config)
        _, info = self._known(confirmed.data)
        for fault in infeasible(confirmed, info):
            self._report(place, "search.confirm", f"on train + val: {fault.text}")

    def _mapping(self, node: Node, path: str) -> Mapping[str, Node] | None:
        if isinstance(node.value, dict):
            return node.value
        if node.value is not REFUSED:
            self._report(node.place, path, f"expected a mapping, got {spell(plain(node))}")
        return None

    def _text(self, node: Node | None, path: str, what: str) -> str | None:
        if node is None or isinstance(node.value, Refused):
            return None
        if isinstance(node.value, str):
            return node.value
        hint = "" if isinstance(node.value, dict | list) else "; quote it"
        self._report(node.place, path, f"expected {what}, got {spell(plain(node))}{hint}")
        return None

    def _description(self, node: Node | None) -> str:
        text = self._text(node, "description", "text") or ""
        if node is not None and _INVISIBLE.search(text):
            rule = "control and text-direction characters are not allowed"
            self._report(node.place, "description", f"{rule}, got {_INVISIBLE.findall(text)[0]!a}")
        if node is not None and not unicodedata.is_normalized("NFC", text):
            self._report(node.place, "description", "must be in Unicode normal form C")
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
        self._report(node.place, "seeds", f"{text}, got {spell(plain(node))}")
        return ()

    def _listed_seeds(self, nodes: Sequence[Node]) -> Sequence[int]:
        seeds: list[int] = []
        rule = "seeds are distinct integers in 0..2^63-1"
        for index, node in enumerate(nodes):
            seed, path = node.value, f"seeds[{index}]"
            if isinstance(seed, Refused):
                continue
            if not isinstance(seed, int) or isinstance(seed, bool) or not 0 <= seed <= MAX_SEED:
                self._report(node.place, path, f"{rule}, got {spell(plain(node))}")
            elif seed in seeds:
                self._report(node.place, path, f"{rule}, got {seed} twice")
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
            self._report(sections[key].place, key, text)
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
                name = _arm_name(arm if "arms" in sections or not axes else "", point)
                given = [*point.values(), *override.values()]
                place = given[0].place if given else sections.get("arms", base).place
                key = run_key(config)
                if key in names:
                    text = f"arms {names[key]!r} and {name!r} are the same run"
                    self._report(place, "arms", text)
                elif name in arms:
                    self._report(place, "arms", f"two grid points are named {name!r}")
                elif len(name) > MAX_NAME:
                    self._report(place, "arms", f"at most {MAX_NAME} characters, got {name!r}")
                arms[name] = config
                names[key] = name
        return arms

    def _base(self, node: Node, prefix: str) -> dict[str, Setting]:
        section = f"base.{prefix}".rstrip(".")
        parts = self._mapping(node, section)
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
                self._report(child.place, section, _unknown_key(key, prefix))
        return settings

    def _overrides(self, node: Node | None) -> dict[str, dict[str, Setting]]:
        if node is None:
            return {"base": {}}
        arms = self._mapping(node, "arms")
        if arms is not None and not arms:
            self._report(node.place, "arms", "needs at least one")
        overrides = {}
        for name, child in (arms or {}).items():
            if not re.fullmatch(ARM_NAME, name):
                text = (
                    f"must be letters, digits, . _ - and +, first a letter or digit, got {name!r}"
                )
                self._report(child.place, "arms", f"{text}; at most {MAX_NAME}")
            values = self._mapping(child, f"arms.{name}")
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
        grid = None if node is None else self._mapping(node, "grid")
        if node is not None and grid is not None and not grid:
            self._report(node.place, "grid", "needs at least one path")
        for path, child in (grid or {}).items():
            where = f"grid.{path}"
            if not self._is_path(path, child, "grid") or isinstance(child.value, Refused):
                continue
            if not isinstance(child.value, list) or not child.value:
                text = f"expected a list of at least one value, got {spell(plain(child))}"
                self._report(child.place, where, text)
                continue
            for arm, override in overrides.items():
                if any(_law_path(path) == _law_path(taken) for taken in override):
                    self._report(child.place, where, f"arm {arm!r} sets this path too")
            axes[path] = [self._setting(path, value, where) for value in child.value]
        return axes

    def _is_path(self, path: str, node: Node, section: str) -> bool:
        try:
            check_path(path)
        except PathError as error:
            self._report(node.place, f"{section}.{path}", str(error))
            return False
        return True

    def _setting(self, path: str, node: Node, where: str) -> Setting:
        value: Any = REFUSED
        if not holds_refused(node):
            try:
                value = parse_value(path, plain(node))
            except (PathError, ValueError) as error:
                self._report(node.place, where, str(error))
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
                self._report(base, "base", f"missing key {path!r}")
        config, gone, faults = join(given)
        found = list(faults)
        if config is not None:
            try:
                data, info = self._known(config.data)
                config = replace(config, data=data)
                found += [
                    fault for fault in infeasible(config, info) if gone.isdisjoint(fault.paths)
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
                self._report(setting.place, setting.where, fault.text)
                return
        self._report(base, f"base.{fault.paths[0]}", fault.text)

    def _known(self, data: DataConfig) -> tuple[DataConfig, DatasetInfo]:
        """Return the data with its folder found and digested, and what is known of it.

        Raises:
            DataError: If an image-folder cannot be read; the same again for the same data.
        """
        if data not in self._known_data:
            try:
                self._known_data[data] = _described(data, self._folder)
            except (DataError, OSError, ValueError) as error:
                self._known_data[data] = str(error)
        known = self._known_data[data]
        if isinstance(known, str):
            raise DataError(known)
        return known


def _described(data: DataConfig, folder: Path) -> tuple[DataConfig, DatasetInfo]:
    if data.folder is None:
        return data, describe(data)
    images = (folder / data.folder).absolute()
    data = replace(data, folder=str(images))
    info = describe(data)
    return replace(data, digest=folder_digest(images)), info


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


def _arm_name(arm: str, point: Settings) -> str:
    """Return `ARM PATH=VALUE ...`, paths by as few last parts as tell them apart."""
    words = [arm] if arm else []
    for path, setting in point.items():
        parts = path.split(".")
        tails = (".".join(parts[start:]) for start in range(len(parts) - 1, -1, -1))
        label = next(
            tail
            for tail in tails
            if sum(f".{other}".endswith(f".{tail}") for other in point) == 1 or tail == path
        )
        words.append(f"{label}={_value_name(setting.value)}")
    return " ".join(words)


def _value_name(value: Any) -> str:
    match value:
        case Erm() | Midpoint():
            return str(spell_law(value))
        case Beta(alpha=alpha):
            return f"beta({alpha!r})"
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case tuple():
            return "-".join(map(str, value))
        case _:
            return re.sub(r"[^A-Za-z0-9._+-]", "-", str(value))
