"""Responses: group the arms of a study by one or two numeric settings, for curves and maps."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from mixup_core.config.parts import leaves
from reports.numbers.runs import settings_of
from sweeps.study.study import Study

# These rules decide which curves and maps a report draws, and no stored file depends on them;
# tests/reports/numbers/test_responses.py holds them.
LEAST_VALUES = 3
"""Smallest number of values of a setting for which its curve is drawn."""

_LEAST_CELLS = 6
"""Smallest number of cells for which a map is drawn; fewer are easier to read in a table."""

Flat = Mapping[str, Any]

Coordinates = tuple[float | None, ...]
"""Values of two (or one) numeric settings; None for an optional setting that is not set."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Response:
    """Arms that differ in one numeric setting, such as alpha, grouped into a figure's lines."""

    path: str
    lines: Mapping[str, Mapping[float, str]]
    """Lines of the figure, each with the arm at each value of the setting, ascending. A line is
    labelled by the settings that its arms share, and may have a single value.
    """
    levels: tuple[str, ...] = ()

    @property
    def values(self) -> tuple[float, ...]:
        """All values of the numeric setting in which the figure's arms differ, ascending."""
        return tuple(sorted({value for line in self.lines.values() for value in line}))


@dataclass(frozen=True, kw_only=True, slots=True)
class ResponsePlane:
    """Arms that differ in two numeric settings, arranged on a grid."""

    across: str
    up: str
    """Dotted path of the setting on the vertical axis; `across` is that on the horizontal axis."""
    maps: Mapping[str, Mapping[Coordinates, str]]
    """Maps of the figure, each with the arm at each pair of values."""


def response_of(study: Study, arms: Sequence[str]) -> Response | None:
    """Group arms into the lines of a figure along the numeric setting with the most values."""
    flats = {arm: settings_of(study.arms[arm]) for arm in arms}
    paths = leaves(study.problem.config)
    for path in _numbers(flats, paths, LEAST_VALUES):
        having = {arm: flat for arm, flat in flats.items() if flat.get(path) is not None}
        lines = _grouped(having, (path,))
        if any(len(line) >= LEAST_VALUES for line in lines.values()):
            return Response(
                path=path,
                lines={
                    label: {
                        value: line[(value,)]
                        for (value,) in sorted(line, key=ascending)
                        if value is not None
                    }
                    for label, line in lines.items()
                },
                levels=tuple(arm for arm, flat in flats.items() if flat.get(path) is None),
            )
    return None


def plane_of(study: Study, arms: Sequence[str]) -> ResponsePlane | None:
    """Arrange arms on the grid of two numeric settings that a study varies in all combinations."""
    flats = {arm: settings_of(study.arms[arm]) for arm in arms}
    numbers = _numbers(flats, leaves(study.problem.config), 2, with_unset=True)
    for first, across in enumerate(numbers):
        for up in numbers[first + 1 :]:
            maps = {
                label: cells
                for label, cells in _grouped(_having(flats, (across, up)), (across, up)).items()
                if all(any(place[which] is not None for place in cells) for which in (0, 1))
            }
            if any(_is_plane(cells) for cells in maps.values()):
                return ResponsePlane(across=across, up=up, maps=maps)
    return None


def ascending(place: Coordinates) -> list[tuple[bool, float]]:
    """Return a sort key for values of settings: numbers ascending, then missing values."""
    return [(value is None, value or 0.0) for value in place]


def is_geometric(values: Sequence[float]) -> bool:
    """Return True if values are spaced more evenly on a logarithmic than on a linear axis."""
    if len(values) < LEAST_VALUES or values[0] <= 0:
        return False
    return _unevenness([math.log(value) for value in values]) < _unevenness(values)


def _numbers(
    flats: Mapping[str, Flat], paths: Iterable[str], least: int, *, with_unset: bool = False
) -> list[str]:
    """Return the paths of numeric settings that take at least `least` values, most values first."""
    counts = {}
    for path in paths:
        values = {flat[path] for flat in flats.values() if path in flat}
        numbers = values - {None}
        if all(isinstance(value, int | float) and not isinstance(value, bool) for value in numbers):
            counts[path] = len(values if numbers and with_unset else numbers)
    counts.pop("seed", None)
    often = [path for path, count in counts.items() if count >= least]
    return sorted(often, key=lambda path: -counts[path])


def _having(flats: Mapping[str, Flat], paths: tuple[str, ...]) -> dict[str, Flat]:
    """Return the arms that have the given settings, without arms that differ in other ways too."""
    having = {arm: flat for arm, flat in flats.items() if flat.keys() >= set(paths)}
    setting = [flat for flat in having.values() if all(flat[path] is not None for path in paths)]
    taken = {
        path: {flat.get(path) for flat in setting} for flat in having.values() for path in flat
    }
    return {
        arm: flat
        for arm, flat in having.items()
        if all(flat.get(path) in taken[path] for path in taken if path not in (*paths, "seed"))
    }


def _grouped(
    flats: Mapping[str, Flat], paths: tuple[str, ...]
) -> dict[str, dict[Coordinates, str]]:
    """Return the arms by their values of some settings, grouped by all their other settings."""
    places: dict[str, Coordinates] = {
        arm: tuple(None if flat[path] is None else float(flat[path]) for path in paths)
        for arm, flat in flats.items()
    }
    others = dict.fromkeys(path for flat in flats.values() for path in flat if path != "seed")
    apart = [path for path in others if path not in paths and not _is_decided(path, flats, places)]
    groups: dict[tuple[Any, ...], list[str]] = {}
    for arm, flat in flats.items():
        groups.setdefault(tuple(flat.get(path) for path in apart), []).append(arm)
    owners = [path.rpartition(".")[0] for path in paths]
    labels = [
        _label(
            arms, {path: flats[arms[0]][path] for path in apart or owners if path in flats[arms[0]]}
        )
        for arms in groups.values()
    ]
    are_told = len(set(labels)) == len(labels)
    return {
        label if are_told else f"{label} ({place + 1})": {places[arm]: arm for arm in arms}
        for place, (label, arms) in enumerate(zip(labels, groups.values(), strict=True))
    }


def _is_decided(path: str, flats: Mapping[str, Flat], places: Mapping[str, Coordinates]) -> bool:
    values: dict[Coordinates, Any] = {}
    return all(
        values.setdefault(places[arm], flat.get(path)) == flat.get(path)
        for arm, flat in flats.items()
    )


def _label(arms: Sequence[str], apart: Flat) -> str:
    """Return the words that the names of all arms share; if none, their common settings."""
    shared = [word for word in arms[0].split() if all(word in arm.split() for arm in arms)]
    settings = [f"{path.rpartition('.')[2]} {value}" for path, value in apart.items()]
    return " ".join(shared) or ", ".join(settings) or "all"


def _is_plane(cells: Mapping[Coordinates, str]) -> bool:
    """Return whether the cells fill over half of a grid with several values on both axes."""
    across, up = ({cell[which] for cell in cells} for which in (0, 1))
    is_broad = min(len(across), len(up)) > 1 and len(cells) >= _LEAST_CELLS
    return is_broad and 2 * len(cells) > len(across) * len(up)


def _unevenness(values: Sequence[float]) -> float:
    steps = [high - low for low, high in pairwise(values)]
    return max(steps) / min(steps)
