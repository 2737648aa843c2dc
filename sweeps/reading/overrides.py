"""Overrides: the `--set PATH=VALUE` texts of the command line, set in a study file's tree."""

from mixup_core.problem import DEFAULT_PROBLEM, PROBLEMS, problem_named
from sweeps.reading.strict_yaml import Fault, Node, Place, read_yaml
from sweeps.reading.tree_paths import config_paths


def override(root: Node, text: str) -> list[Fault]:
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
        return [Fault(place=place, path="", text=rule)]
    value, faults = read_yaml(spelled.encode("utf-8", "surrogatepass"), lambda _: place, path)
    keys = _keys(root, path)
    if not keys:
        arms = ", ".join(_parts(root, "arms")) or "none"
        rule = f"names no arm of the file; its arms: {arms}"
        return [*faults, Fault(place=place, path=path, text=rule)]
    parent = root.value
    for depth, key in enumerate(keys[:-1], start=1):
        assert isinstance(parent, dict)
        reached = ".".join(keys[:depth])
        parent = parent.setdefault(key, Node(value={}, place=place, path=reached)).value
        if not isinstance(parent, dict):
            return [*faults, Fault(place=place, path=reached, text="has no parts")]
    assert isinstance(parent, dict)
    parent[keys[-1]] = value
    return faults


def _keys(root: Node, path: str) -> list[str]:
    """Return the keys that lead to a path, none for an unknown arm; arm names may hold dots."""
    section, _, rest = path.partition(".")
    match section:
        case "base" if rest:
            return ["base", *_nested(root, rest)]
        case "grid" | "zip" if rest:
            return [section, rest]
        case "search" if rest.startswith("space."):
            return ["search", "space", rest.removeprefix("space.")]
        case "search" | "references" if rest:
            return [section, *rest.split(".")]
        case "arms" if rest:
            for name in sorted(_parts(root, "arms"), key=len, reverse=True):
                if rest == name:
                    return ["arms", name]
                if rest.startswith(f"{name}."):
                    return ["arms", name, rest.removeprefix(f"{name}.")]
            return []
        case _:
            return [path]


def _nested(root: Node, path: str) -> list[str]:
    """Return the keys of a path of the base, which is nested as far as its groups go."""
    assert isinstance(root.value, dict)
    named = root.value.get("problem")
    is_meant = (name for name in PROBLEMS if named is not None and named.value == name)
    name = next(is_meant, DEFAULT_PROBLEM)
    groups = config_paths(problem_named(name)).groups
    names = path.split(".")
    deep = max((n for n in range(len(names)) if ".".join(names[:n]) in groups), default=0)
    return [*names[:deep], ".".join(names[deep:])]


def _parts(root: Node, key: str) -> list[str]:
    assert isinstance(root.value, dict)
    node = root.value.get(key)
    return list(node.value) if node is not None and isinstance(node.value, dict) else []
