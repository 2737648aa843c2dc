"""Overrides: the `--set PATH=VALUE` texts of the command line, set in a study file's tree."""

from collections.abc import Mapping

from sweeps.reading.config_paths import ALPHA_PATHS
from sweeps.reading.strict_yaml import Node, Place, Problem, read_yaml


def override(root: Node, text: str) -> list[Problem]:
    """Set one value in the tree of a study file, as if the file had said so.

    The path is not checked here: an unknown one becomes an unknown key of the file, reported with
    `--set` as its place.

    Args:
        root: Tree of the file, a mapping; changed in place.
        text: `PATH=VALUE`. PATH leads through the file (`seeds`, `base.epochs`,
            `arms.uniform.mix.law`, `grid.optimizer.lr`), VALUE is YAML.

    Returns:
        What is wrong with the text itself.
    """
    place = Place(source=f"--set {text}")
    path, equals, spelled = text.partition("=")
    if not path or not equals:
        rule = "`PATH=VALUE` must hold, for example seeds=6"
        return [Problem(place=place, path="", text=rule)]
    value, problems = read_yaml(spelled.encode("utf-8", "surrogatepass"), lambda _: place)
    keys = _keys(root, path)
    if not keys:
        arms = ", ".join(_arm_names(root)) or "none"
        rule = f"names no arm of the file; its arms: {arms}"
        return [*problems, Problem(place=place, path=path, text=rule)]
    parent = root.value
    for depth, key in enumerate(keys[:-1], start=1):
        assert isinstance(parent, dict)
        parent = parent.setdefault(key, Node(value={}, place=place)).value
        if not isinstance(parent, dict):
            reached = ".".join(keys[:depth])
            return [*problems, Problem(place=place, path=reached, text="has no parts")]
    assert isinstance(parent, dict)
    parent[keys[-1]] = Node(value=value.value, place=place)
    return problems


def _keys(root: Node, path: str) -> list[str]:
    """Return the keys that lead to a path, none for an unknown arm; arm names may hold dots."""
    section, _, rest = path.partition(".")
    match section:
        case "base" if rest in ALPHA_PATHS:
            return ["base", *ALPHA_PATHS[rest].split("."), "beta"]
        case "base" if rest:
            return ["base", *rest.split(".")]
        case "grid" if rest:
            return ["grid", rest]
        case "search" if rest.startswith("space."):
            return ["search", "space", rest.removeprefix("space.")]
        case "search" if rest:
            return ["search", *rest.split(".")]
        case "arms" if rest:
            for name in sorted(_arm_names(root), key=len, reverse=True):
                if rest == name:
                    return ["arms", name]
                if rest.startswith(f"{name}."):
                    return ["arms", name, rest.removeprefix(f"{name}.")]
            return []
        case _:
            return [path]


def _arm_names(root: Node) -> list[str]:
    assert isinstance(root.value, Mapping)
    arms = root.value.get("arms")
    return list(arms.value) if arms is not None and isinstance(arms.value, dict) else []
