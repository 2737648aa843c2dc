"""NodeReader: typed values out of YAML nodes, and a list of the problems met on the way."""

from collections.abc import Mapping, Sequence

from sweeps.reading.config_paths import did_you_mean
from sweeps.reading.strict_yaml import Node, Place, Problem, Refused, plain, spell


class NodeReader:
    """Reads single nodes. What is wrong is reported and read as absent; `Refused` was reported."""

    def __init__(self, problems: list[Problem]) -> None:
        """Make a reader.

        Args:
            problems: What was found before; what is found from here on is appended.
        """
        self.problems = problems

    def report(self, place: Place, path: str, text: str) -> None:
        """Add a problem."""
        self.problems.append(Problem(place=place, path=path, text=text))

    def mapping(self, node: Node, path: str) -> Mapping[str, Node] | None:
        """Return the nodes of a mapping by key; None if the node is none."""
        if isinstance(node.value, dict):
            return node.value
        if not isinstance(node.value, Refused):
            self.report(node.place, path, f"expected a mapping, got {spell(plain(node))}")
        return None

    def only(self, parts: Mapping[str, Node], names: Sequence[str], path: str) -> None:
        """Report the keys of a mapping that are not among some names."""
        for key, child in parts.items():
            if key not in names:
                self.report(child.place, path, f"unknown key {key!r}{did_you_mean(key, names)}")

    def text(self, node: Node | None, path: str, what: str) -> str | None:
        """Return a text; None if there is none.

        Args:
            node: None where the key is absent.
            path: Dotted path inside the file.
            what: What the text is, for the message.
        """
        if node is None or isinstance(node.value, Refused):
            return None
        if isinstance(node.value, str):
            return node.value
        hint = "" if isinstance(node.value, dict | list) else "; quote it"
        self.report(node.place, path, f"expected {what}, got {spell(plain(node))}{hint}")
        return None

    def choice(self, node: Node | None, path: str, names: Sequence[str], default: str) -> str:
        """Return one of some names; the default where the key is absent."""
        if node is None or isinstance(node.value, Refused):
            return default
        if node.value in names:
            return str(node.value)
        text = f"expected one of {', '.join(names)}, got {spell(plain(node))}"
        self.report(node.place, path, f"{text}{did_you_mean(str(node.value), names)}")
        return default

    def integer(
        self, node: Node | None, path: str, low: int, high: int, default: int | None
    ) -> int | None:
        """Return an integer between two bounds, both included; the default where it is absent."""
        if node is None or isinstance(node.value, Refused):
            return default
        value = node.value
        if isinstance(value, int) and not isinstance(value, bool) and low <= value <= high:
            return value
        self.report(
            node.place, path, f"expected an integer in {low}..{high}, got {spell(plain(node))}"
        )
        return default
