"""Keying: rules that say which fields of a configuration enter the keys of its results."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True, slots=True)
class Keying:
    """Rules that say which fields of a configuration enter the run key and the stage keys.

    `mixup_core.keys` computes the keys. A path is the dotted name of a field, such as `mix.law`.
    """

    is_named: bool = True
    """True if the problem's name enters the keys. It does not for images, which were the only
    problem when results were first stored.
    """
    numerics: int = 0
    """Version of this problem's numerics. Raise it when the same configuration computes other
    numbers, so that old results are not reused. 0 does not enter keys. `NUMERICS_VERSION` does the
    same for all problems.
    """

    first: Mapping[str, Any] = field(default_factory=dict)
    """Paths that are in every key, with the value to use if the configuration lacks them. All other
    paths enter a key only if they differ from their default; a new field thus leaves the keys of
    stored results unchanged.
    """
    never: Mapping[str, str] = field(default_factory=dict)
    """Exact paths that enter no key, each with the reason why it does not change the numbers."""
    stands_for: Mapping[str, str] = field(default_factory=dict)
    """Paths that are replaced in keys, each with the path that replaces it: `data.folder` with
    `data.digest`. A configuration that sets the first has no key until the second is filled in.
    """
    by_epoch: Mapping[str, str] = field(default_factory=dict)
    """Exact paths that enter stage keys only through `of_epoch`, each with the reason.

    The path of a field with several options covers the fields of each option, and the path of a
    list the fields of its items; but if some of these fields are listed too, only those are
    covered. All other paths, and so every new field, enter the key of every stage.
    """
    of_epoch: Callable[[Any, int], Any] = lambda config, epoch: None
    """Function of configuration and 0-based epoch; returns the values of the `by_epoch` paths in
    that epoch, as JSON. It must not depend on the seed. Computed real numbers are rounded to 12
    significant digits.
    """

    def __post_init__(self) -> None:
        """Check the listed paths.

        Raises:
            ValueError: If a path ends in a dot or has no reason.
        """
        for path, reason in (*self.never.items(), *self.by_epoch.items()):
            if path.endswith("."):
                raise ValueError(
                    f"Keying: {path!r} ends in a dot, but must be the exact path of a field; list "
                    "each field below it, with the reason why the keys leave it out."
                )
            if not reason.strip():
                raise ValueError(f"Keying: {path!r} needs a reason why the keys leave it out.")

    def left_out(self) -> Iterator[tuple[str, str, str]]:
        """Yield (path, keys, reason): each path left out of keys, which keys lack it, and why."""
        for path, reason in self.never.items():
            yield path, "all keys", reason
        for path, stand_in in self.stands_for.items():
            yield path, "all keys", f"`{stand_in}` enters in its place."
        for path, reason in self.by_epoch.items():
            yield path, "stage keys, but for the epochs it decides", reason

    def covers(self, path: str) -> bool:
        """Return whether a path enters stage keys only through `of_epoch`."""
        if path in self.by_epoch:
            return True
        above = path.rpartition(".")[0]
        while above and above not in self.by_epoch:
            above = above.rpartition(".")[0]
        return bool(above) and not self.names_below(above)

    def names_below(self, path: str) -> bool:
        """Return whether `by_epoch` lists single fields below a path."""
        return any(named.startswith(f"{path}.") for named in self.by_epoch)
