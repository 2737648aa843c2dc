"""NodeReader: typed values out of YAML nodes, and a list of the faults met on the way."""

import dataclasses
import difflib
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, get_args, get_origin

from mixup_core.problem import DataError
from mixup_core.rules import RuleError, shown
from mixup_core.tree import SpellingError, parsed
from sweeps.reading.strict_yaml import REFUSED, Fault, Node, Refused, holds_refused, plain
from sweeps.reading.tree_paths import Setting, Settings, TreePaths, blamed, members

MAX_HINTS = 20
"""Problems of a file after which no nearest name is looked for: it would take long for 20,000."""


class NodeReader:
    """Reads nodes by type. What is wrong is reported and read as `REFUSED`, which was reported."""

    def __init__(self, faults: list[Fault]) -> None:
        """Make a reader.

        Args:
            faults: What was found before; what is found from here on is appended.
        """
        self.faults = faults

    def report(self, node: Node, text: str) -> None:
        """Add a problem of a node."""
        self.faults.append(Fault(place=node.place, path=node.path, text=text))

    def has_problem(self, node: Node) -> bool:
        """Return whether a problem of a node, or of anything in it, was reported."""
        inside = (f"{node.path}.", f"{node.path}[")
        return any(p.path == node.path or p.path.startswith(inside) for p in self.faults)

    def did_you_mean(self, word: str, known: Iterable[str]) -> str:
        """Return ` (did you mean X?)` for the nearest known word, or nothing if none is near."""
        return did_you_mean(word, known) if len(self.faults) < MAX_HINTS else ""

    def mapping(self, node: Node | None) -> Mapping[str, Node]:
        """Return the nodes of a mapping by key; none if the node is none."""
        if node is None or isinstance(node.value, dict | Refused):
            return node.value if node is not None and isinstance(node.value, dict) else {}
        self.report(node, f"expected a mapping, got {shown(plain(node))}")
        return {}

    def filled(self, node: Node | None, what: str) -> Sequence[Node]:
        """Return the nodes of a list of at least one thing; none if the node is none."""
        if node is None or isinstance(node.value, Refused):
            return ()
        if isinstance(node.value, list) and node.value:
            return node.value
        self.report(node, f"expected a list of at least one {what}, got {shown(plain(node))}")
        return ()

    def only(self, parts: Mapping[str, Node], names: Collection[str]) -> None:
        """Report the keys of a mapping that are not among some names."""
        for key in (key for key in parts if key not in names):
            self.report(parts[key], f"unknown key {key!r}{self.did_you_mean(key, names)}")

    def value(self, hint: Any, node: Node) -> Any:
        """Return the value of a type, lists and sections read part by part.

        Args:
            hint: Type as a dataclass of a tree has it; `object` for the node itself.
            node: Where the value was written.
        """
        kind, *others = [member for member in members(hint) if member is not type(None)]
        if hint is object:
            return node
        if node.value is not None and not others and _is_section(kind):
            paths, before = TreePaths(kind), len(self.faults)
            section, gone = self.joined(paths, [self.nested(paths, node)], node)
            is_wrong = gone or section is None or len(self.faults) > before
            return REFUSED if is_wrong else section
        items = [get_args(member)[0] for member in members(hint) if get_origin(member) is tuple]
        try:
            if not holds_refused(node):
                return parsed(hint, plain(node))
        except (SpellingError, RuleError) as error:
            if not (items and isinstance(node.value, list)):
                self.report(node, f"{error}{self._way_out(error)}")
        for child in node.value if isinstance(node.value, list) and items else ():
            self.value(items[0], child)
        return REFUSED

    def _way_out(self, error: SpellingError | RuleError) -> str:
        if not isinstance(error, SpellingError):
            return ""
        if isinstance(error.value, str):
            return self.did_you_mean(error.value, error.names)
        is_scalar = isinstance(error.value, bool | int | float)
        return "; quote it" if is_scalar and "expected text" in str(error) else ""

    def section(self, paths: TreePaths, node: Node) -> Any:
        """Return the tree that a mapping holds, defaults for what is wrong; None if there is none.

        Args:
            paths: Of its type.
            node: Where it was written.
        """
        return self.joined(paths, [self.nested(paths, node)], node)[0]

    def joined(
        self, paths: TreePaths, levels: Sequence[Settings], node: Node
    ) -> tuple[Any, frozenset[str]]:
        """Return `TreePaths.join` of levels without its errors, which are reported.

        Args:
            paths: Of the type of the tree.
            levels: As for `TreePaths.merged`.
            node: Of faults that no given value causes.
        """
        given = paths.merged(levels)
        for name in paths.required:
            if name not in given:
                self.report(node, f"missing key {name!r}")
        tree, gone, errors = paths.join(given)
        for error in errors:
            self.blame(error, levels, node)
        return tree, gone

    def blame(self, error: RuleError | DataError, levels: Sequence[Settings], node: Node) -> None:
        """Report an error at the most special of the values that it concerns; see `joined`."""
        setting = blamed(error, levels)
        path = ".".join([node.path, *error.fields[:1]]).strip(".")
        missing = dataclasses.replace(node, path=path)
        self.report(missing if setting is None else setting.node, str(error))

    def nested(self, paths: TreePaths, node: Node, prefix: str = "") -> dict[str, Setting]:
        """Return the settings of a mapping whose groups are mappings inside it.

        Args:
            paths: Of the type of the tree.
            node: The mapping.
            prefix: Path of the group inside the tree with a dot after it; empty for the tree.
        """
        if not isinstance(node.value, dict):
            self.mapping(node)
            refused = Setting(value=REFUSED, node=node)
            return {path: refused for path in paths.leaves if path.startswith(prefix)}
        settings: dict[str, Setting] = {}
        for key, child in node.value.items():
            path, head = f"{prefix}{key}", f"{prefix}{key.partition('.')[0]}"
            if "." not in key and path in paths.groups:
                settings |= self.nested(paths, child, f"{path}.")
            elif path in paths.leaves and ("." not in key or head in paths.choices):
                settings[path] = self.setting(paths, path, child)
            else:
                self.report(child, self._unknown_key(paths, key, prefix))
        return settings

    def dotted(self, paths: TreePaths, node: Node) -> dict[str, Setting]:
        """Return the settings of a mapping of dotted paths."""
        return {
            path: self.setting(paths, path, child)
            for path, child in self.mapping(node).items() if self.is_path(paths, path, child)
        }  # fmt: skip

    def setting(self, paths: TreePaths, path: str, node: Node) -> Setting:
        """Return what is given under a path of a tree."""
        leaf, value = paths.leaves[path], node.value
        if not (isinstance(value, str) and value in leaf.options):
            value = self.value(leaf.hint, node)
        written = node.value if leaf.options and isinstance(node.value, dict) else {}
        for content in (part.value for part in written.values() if isinstance(part.value, dict)):
            for key in (key for key in content if f"{path}.{key}" in paths.reserved):
                self.report(content[key], paths.reserved[f"{path}.{key}"])
        return Setting(value=value, node=node)

    def is_path(self, paths: TreePaths, path: str, node: Node) -> bool:
        """Return whether a dotted path names one value; one that does not is reported."""
        if path in paths.leaves:
            return True
        if path in paths.reserved:
            text = paths.reserved[path]
        elif path in paths.groups:
            inside = ", ".join(known for known in paths.leaves if known.startswith(f"{path}."))
            text = f"names a group of values; give one of {inside}"
        else:
            text = f"unknown path{self.did_you_mean(path, paths.leaves)}"
        self.report(node, text)
        return False

    def _unknown_key(self, paths: TreePaths, key: str, prefix: str) -> str:
        path = f"{prefix}{key}"
        if path in paths.reserved:
            return f"{key!r} {paths.reserved[path]}"
        if path in paths.leaves or path in paths.groups:
            nested = path.replace(".", ": {", 1)
            return f"unknown key {key!r}; this is nested, write {nested}: ...}}"
        inside = [known.removeprefix(prefix) for known in paths.leaves if known.startswith(prefix)]
        siblings = dict.fromkeys(name.partition(".")[0] for name in inside)
        hint = self.did_you_mean(key, siblings) or self.did_you_mean(path, paths.leaves)
        return f"unknown key {key!r}{hint}"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return ` (did you mean X?)` for the nearest known word, or nothing if none is near.

    A long path may be given by its last part alone: `lr` finds `optimizer.lr`. Of very many words
    the first 1,000 are looked at.
    """
    known = list(islice(known, 1000))
    by_tail = {path.rpartition(".")[2]: path for path in reversed(known)}
    nearest = difflib.get_close_matches(word, known, n=1) or [
        by_tail[tail] for tail in difflib.get_close_matches(word.rpartition(".")[2], by_tail, n=1)
    ]
    return f" (did you mean {nearest[0]}?)" if nearest else ""


def _is_section(kind: Any) -> bool:
    """Return whether a type is a dataclass that a study file writes as a mapping of its fields."""
    names = (getattr(kind, "tag", None), getattr(kind, "name", None))
    return dataclasses.is_dataclass(kind) and not any(isinstance(name, str) for name in names)
