"""Keying: rules that say which fields of a configuration enter its run key and its stage keys."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True, slots=True)
class Keying:
    """Rules that say which fields of a configuration enter its run key and its stage keys.

    Keys are hashes that name stored results; `mixup_core.keys` computes them. Fields are listed by
    path, the dotted name.

    Example:
        >>> from mixsweep.plugins import Keying
        >>> keying = Keying(never={"chunk": "Only the memory depends on the size of a chunk."})
        >>> list(keying.never)
        ['chunk']
    """

    is_named: bool = True
    """True if the problem's name enters the keys; False only for `images`, the first problem."""
    corrected: Callable[[Any], int] = lambda config: 0
    """Takes a configuration; returns the number of corrections of this problem's code that have
    changed its results: their keys change, and old results are not reused. 0 does not enter keys.
    """
    first: Mapping[str, Any] = field(default_factory=dict)
    """Paths that enter every key, each with the value if the configuration has no such field. Any
    other field enters only if its value is not its default, so a new field leaves old keys as they
    are.
    """
    never: Mapping[str, str] = field(default_factory=dict)
    """Exact paths that enter no key, each with the reason why the field does not change results."""
    stands_for: Mapping[str, str] = field(default_factory=dict)
    """Paths that enter no key, each with the path that enters instead: `data.folder` with
    `data.digest`. A configuration that sets the first has no key until the second is filled in.
    """
    by_epoch: Mapping[str, str] = field(default_factory=dict)
    """Exact paths whose values do not enter stage keys, each with the reason: the values that
    `of_epoch` returns for each epoch enter instead. A path covers all fields below it, such as
    those of each option of a choice, unless `by_epoch` lists some of them: then only these. Every
    other field, and so every new one, enters all stage keys, except `epochs` and the paths of
    `never` and `stands_for`.
    """
    of_epoch: Callable[[Any, int], Any] = lambda config, epoch: None
    """Takes a configuration and a 0-based epoch; returns the values of the `by_epoch` fields in
    that epoch, as JSON. They must not depend on the seed; round computed numbers to 12 significant
    digits.
    """

    def __post_init__(self) -> None:
        for path, reason in (*self.never.items(), *self.by_epoch.items()):
            if not reason.strip():
                raise ValueError(
                    f"Keying: the path {path!r} in `never` or `by_epoch` needs a reason why keys "
                    f"leave the field out, got {reason!r}."
                )

    def left_out(self) -> Iterator[tuple[str, str, str]]:
        """Yield path, keys that leave it out (`all keys`) and reason for each such field.

        Example:
            >>> from mixsweep.plugins import Keying
            >>> list(Keying(stands_for={"data.folder": "data.digest"}).left_out())
            [('data.folder', 'all keys', '`data.digest` enters in its place.')]
        """
        for path, reason in self.never.items():
            yield path, "all keys", reason
        for path, stand_in in self.stands_for.items():
            yield path, "all keys", f"`{stand_in}` enters in its place."
        for path, reason in self.by_epoch.items():
            yield path, "stage keys, except those of epochs that the field affects", reason

    def covers(self, path: str) -> bool:
        """Return True if `by_epoch` covers the field at a path, so that stage keys leave it out.

        Example:
            >>> from mixsweep.plugins import Keying
            >>> keying = Keying(by_epoch={"schedule": "The value of each epoch enters."})
            >>> keying.covers("schedule.rate"), keying.covers("steps")
            (True, False)
        """
        # Frozen: what this returns for old configurations, because keys depend on it. After a
        # change, stored results are not found; tests/golden/test_keys.py fails.
        if path in self.by_epoch:
            return True
        above = path.rpartition(".")[0]
        while above and above not in self.by_epoch:
            above = above.rpartition(".")[0]
        return bool(above) and not self.names_below(above)

    def names_below(self, path: str) -> bool:
        """Return True if `by_epoch` contains a field below a path, such as `a.b` for `a`.

        Example:
            >>> from mixsweep.plugins import Keying
            >>> keying = Keying(by_epoch={"mix.switch": "The law of each epoch enters."})
            >>> keying.names_below("mix"), keying.names_below("mix.switch")
            (True, False)
        """
        return any(named.startswith(f"{path}.") for named in self.by_epoch)
