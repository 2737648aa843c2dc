"""Keying: how a configuration enters the keys of its results."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True, slots=True)
class Keying:
    """The rules by which a configuration enters the keys of its results (`mixup_core.keys`)."""

    is_named: bool = True
    """True if the name of the problem enters. Images were the only one when results were first
    stored."""
    numerics: int = 0
    """Raised whenever what the same configuration computes changes in this problem alone, so that
    old results are not mixed in; 0 enters no key. `NUMERICS_VERSION` is that of all problems."""

    first: Mapping[str, Any] = field(default_factory=dict)
    """Paths that are in every key, to the value they have there where the tree lacks them. A path
    that is not among them enters a key only where it differs from its default, so that a field
    added later orphans no result."""
    never: Mapping[str, str] = field(default_factory=dict)
    """Exact paths that enter no key, each with the reason why it changes no number."""
    stands_for: Mapping[str, str] = field(default_factory=dict)
    """Paths that never enter either, to the path that stands for what they name (`data.folder` to
    `data.digest`): a configuration that gives the first has no key before it has the second."""
    by_epoch: Mapping[str, str] = field(default_factory=dict)
    """Exact paths that enter the keys of stages through `of_epoch` alone, each with the reason why
    that is enough. The path of a choice covers the fields of its members, and the path of a list
    the fields of its items; if some of these fields are named as well, it covers only those. Every
    other path enters the key of every stage, so that a new field does."""
    of_epoch: Callable[[Any, int], Any] = lambda config, epoch: None
    """(config, 0-based epoch) to what decides that epoch beyond the other paths, as JSON, whatever
    the seed; a real number that was computed is rounded to 12 significant digits."""

    def __post_init__(self) -> None:
        """Check the named paths.

        Raises:
            ValueError: If a path ends in a dot or has no reason.
        """
        for path, reason in (*self.never.items(), *self.by_epoch.items()):
            if path.endswith("."):
                raise ValueError(
                    f"Keying names exact paths, but {path!r} ends in a dot: name each field below "
                    "it, with the reason why it may leave the keys."
                )
            if not reason.strip():
                raise ValueError(f"Keying has no reason why {path!r} may leave the keys.")

    def left_out(self) -> Iterator[tuple[str, str, str]]:
        """Yield each path that leaves a key, the keys that it leaves, and the reason."""
        for path, reason in self.never.items():
            yield path, "all keys", reason
        for path, stand_in in self.stands_for.items():
            yield path, "all keys", f"`{stand_in}` enters in its place."
        for path, reason in self.by_epoch.items():
            yield path, "stage keys, but for the epochs it decides", reason

    def covers(self, path: str) -> bool:
        """Return whether a path enters the keys of stages through `of_epoch` alone."""
        if path in self.by_epoch:
            return True
        above = path.rpartition(".")[0]
        while above and above not in self.by_epoch:
            above = above.rpartition(".")[0]
        return bool(above) and not self.names_below(above)

    def names_below(self, path: str) -> bool:
        """Return whether `by_epoch` names fields below a path one by one."""
        return any(named.startswith(f"{path}.") for named in self.by_epoch)
