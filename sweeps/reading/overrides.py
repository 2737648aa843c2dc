"""Overrides: apply `--set PATH=VALUE` options to the content of a study file."""

from typing import Any

from mixup_core.problem import DEFAULT_PROBLEM, PROBLEMS, problem_named
from sweeps.reading.strict_yaml import Document, Mistake, Place, dotted, read_value
from sweeps.reading.tree_paths import TreePaths, config_paths
from sweeps.reading.tree_reader import named


def override(document: Document, text: str) -> None:
    """Set one value in the content of a study file, as if the file contained it.

    Faults in `PATH=VALUE` are added to the document's faults. An unknown path is no fault yet:
    the reader of the study file reports it later as an unknown key, placed in the `--set` option.
    """
    place = Place(source=f"--set {text}")
    path, equals, spelled = text.partition("=")
    if not path or not equals:
        rule = "--set needs PATH=VALUE, for example seeds=6"
        document.faults.append(Mistake(place=place, path="", text=rule))
        return
    keys = _keys(document.value, path)
    at = tuple(keys) or (path,)
    given = read_value(spelled, place, at)
    document.faults.extend(given.faults)
    document.places.update(given.places)
    if not keys:
        arms = named(path, _arms(document.value)) or "none"
        document.report(at, f"names no arm of the study file; its arms are: {arms}")
        return
    _drop_other_spellings(document.value, keys, is_whole=isinstance(given.value, dict))
    parent = document.value
    for depth, key in enumerate(keys[:-1], start=1):
        if key not in parent:
            document.places[at[:depth]] = place
        parent = parent.setdefault(key, {})
        if not isinstance(parent, dict):
            told = "is one value, so nothing can be set inside it"
            document.faults.append(Mistake(place=place, path=dotted(at[:depth]), text=told))
            return
    parent[keys[-1]] = given.value


def _drop_other_spellings(study: dict[str, Any], keys: list[str], *, is_whole: bool) -> None:
    """Remove settings of the same field that a study file writes nested, dotted or with a tag.

    If a choice is set as a whole, those of its fields are removed, too.
    """
    head = {"base": 1, "grid": 1, "zip": 1, "arms": 2, "search": 2}.get(keys[0], len(keys))
    node: Any = study
    for key in keys[:head]:
        node = node.get(key) if isinstance(node, dict) else None
    if keys[head:] and isinstance(node, dict):
        paths = _paths(study)
        path = paths.short(".".join(keys[head:]))
        below = f"{path}." if is_whole and path in paths.choices else "."

        def drop(inside: dict[str, Any], prefix: str, kept: list[str]) -> None:
            for key in list(inside):
                here = f"{prefix}{key}"
                if here in paths.groups and isinstance(inside[key], dict):
                    drop(inside[key], f"{here}.", kept[1:] if key == kept[0] else [""])
                    continue
                short = paths.short(here)
                if (short == path and kept != [key]) or short.startswith(below):
                    del inside[key]

        drop(node, "", keys[head:])


def _paths(study: dict[str, Any]) -> TreePaths:
    named = study.get("problem")
    known = named if isinstance(named, str) and named in PROBLEMS else DEFAULT_PROBLEM
    return config_paths(problem_named(known))


def _keys(study: dict[str, Any], path: str) -> list[str]:
    """Split the dotted path of a `--set` option into nested keys; empty for an unknown arm."""
    section, _, rest = path.partition(".")
    match section:
        case "base" if rest:
            return ["base", *_paths(study).keys(rest)]
        case "grid" | "zip" if rest:
            return [section, rest]
        case "search" if rest.startswith("space."):
            return ["search", "space", rest.removeprefix("space.")]
        case "search" | "budget" | "readout" | "seeds" if rest:
            return [section, *rest.split(".")]
        case "references" | "untrained" if rest:
            arm, _, metric = rest.rpartition(".")
            return [section, arm, metric] if arm and rest not in _arms(study) else [section, rest]
        case "arms" if rest:
            names = [name for name in _arms(study) if f"{rest}.".startswith(f"{name}.")]
            name = max(names, key=len, default=None)
            after = rest.removeprefix(name or "")
            return [] if name is None else ["arms", name, after[1:]] if after else ["arms", name]
        case _:
            return [path]


def _arms(study: dict[str, Any]) -> list[str]:
    arms = study.get("arms")
    return list(arms) if isinstance(arms, dict) else []
