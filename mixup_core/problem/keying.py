"""Keying: rules by which a configuration enters the keys of its results."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True, slots=True)
class Keying:
    """The rules by which a configuration enters the keys of its results (`mixup_core.keys`)."""

    is_named: bool = True
    """True if the problem's name enters the keys. It does not for images, which were the only
    problem when results were first stored.
    """
    numerics: int = 0
    """Version of this problem's numerics. Raise it when the same configuration computes other
    numbers, so that old results are not reused. 0 enters no key. `NUMERICS_VERSION` does this for
    all problems.
    """

    first: Mapping[str, Any] = field(default_factory=dict)
    """Paths that are in every key, with the value to use if the configuration lacks them. All other
    paths enter a key only if they differ from their default, so that adding a field orphans no
    result.
    """
    never: Mapping[str, str] = field(default_factory=dict)
    """Exact paths that enter no key, each with the reason why it does not change the numbers."""
    stands_for: Mapping[str, str] = field(default_factory=dict)
    """Paths that are replaced in the keys by another path (`data.folder` by `data.digest`). A
    configuration that sets the first has no key until the second is filled in.
    """
    by_epoch: Mapping[str, str] = field(default_factory=dict)
    """Exact paths that enter stage keys only through `of_epoch`, each with the reason.

    The path of a choice covers the fields of its members, and the path of a list the fields of its
    items; but if some of these fields are listed too, only those are covered. All other paths, and
    so every new field, enter the key of every stage.
    """
    of_epoch: Callable[[Any, int], Any] = lambda config, epoch: None
    """Function of configuration and 0-based epoch; returns the values of the `by_epoch` paths in
    that epoch, as JSON. It must not depend on the seed. Computed real numbers are rounded to 12
    significant digits.
    """

    def __post_init__(self) -> None:
        """Check the named paths.

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
        """Yield each path that is left out of keys, which keys those are, and the reason."""
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
        """Return whether `by_epoch` lists fields below a path individually."""
        return any(named.startswith(f"{path}.") for named in self.by_epoch)
