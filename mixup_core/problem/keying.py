"""Keying: rules that say which fields of a configuration enter its run key and its stage keys."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True, slots=True)
class Keying:
    """Rules that say which fields of a configuration enter its run key and its stage keys.

    Keys are hashes that name stored results; `mixup_core.keys` computes them. Fields are listed by
    path, the dotted name: `never` lists those that enter no key, `stands_for` those that another
    field replaces, `by_epoch` those whose value in each epoch enters stage keys.

    Example:
        >>> from mixsweep.plugins import Keying
        >>> keying = Keying(never={"chunk": "Only the memory depends on the size of a chunk."})
        >>> list(keying.never)
        ['chunk']
    """

    is_named: bool = True
    """True if the problem's name enters the keys. False only for `images`, which was the only
    problem when results were first stored.
    """
    corrected: Callable[[Any], int] = lambda config: 0
    """Takes a configuration; returns the number of corrections of this problem's code that have
    changed the results of this configuration: their keys change, and old results are not reused. 0
    does not enter keys. `NUMERICS_VERSION` is the version of the computations of all problems.
    """

    first: Mapping[str, Any] = field(default_factory=dict)
    """Paths that enter every key, each with the value to use if the configuration has no such
    field. Any other field enters a key only if its value differs from its default, so a new field
    leaves the keys of stored results unchanged.
    """
    never: Mapping[str, str] = field(default_factory=dict)
    """Exact paths that enter no key, each with the reason why the field does not change results."""
    stands_for: Mapping[str, str] = field(default_factory=dict)
    """Paths that do not enter keys, each with the path that enters instead: `data.folder` with
    `data.digest`. A configuration that sets `data.folder` has no key until `data.digest` is filled
    in.
    """
    by_epoch: Mapping[str, str] = field(default_factory=dict)
    """Exact paths whose values do not enter stage keys, each with the reason. The values that
    `of_epoch` returns for each epoch enter instead.

    A path covers all fields below it, such as the fields of each option of a choice, or of each
    item of a list. If `by_epoch` also lists some of the fields below a path, only the listed ones
    are covered. Every other field, and so every new one, enters all stage keys, except `epochs` and
    the fields that `never` and `stands_for` leave out.
    """
    of_epoch: Callable[[Any, int], Any] = lambda config, epoch: None
    """Takes a configuration and a 0-based epoch; returns the values of the `by_epoch` fields in
    that epoch, as JSON. The result must not depend on the seed. Round computed real numbers to 12
    significant digits.
    """

    def __post_init__(self) -> None:
        """Check that each path of `never` and `by_epoch` is exact and has a reason."""
        for path, reason in (*self.never.items(), *self.by_epoch.items()):
            if path.endswith("."):
                raise ValueError(
                    f"Keying: the path {path!r} in `never` or `by_epoch` ends in a dot, but must "
                    "be the exact path of a field. List each field of the group instead, and give "
                    "each the reason why it is not part of keys."
                )
            if not reason.strip():
                raise ValueError(
                    f"Keying: the path {path!r} in `never` or `by_epoch` needs a reason why keys "
                    f"leave the field out, got {reason!r}."
                )

    def left_out(self) -> Iterator[tuple[str, str, str]]:
        """Yield (path, keys, reason) for each field that run keys or stage keys leave out.

        `path` is the field's dotted name. `keys` says, for the documentation, which keys omit the
        field, such as `all keys`.

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
        """Return True if `by_epoch` covers a field, so that stage keys leave out the field itself.

        If `by_epoch` lists a group, such as `mix`, all fields of the group are covered (`mix.law`);
        if it also lists some of them, only these are covered. Values of `of_epoch` enter instead.

        Args:
            path: Dotted name of the field.

        Example:
            >>> from mixsweep.plugins import Keying
            >>> keying = Keying(by_epoch={"schedule": "The value of each epoch enters."})
            >>> keying.covers("schedule.rate"), keying.covers("steps")
            (True, False)
        """
        if path in self.by_epoch:
            return True
        above = path.rpartition(".")[0]
        while above and above not in self.by_epoch:
            above = above.rpartition(".")[0]
        return bool(above) and not self.names_below(above)

    def names_below(self, path: str) -> bool:
        """Return True if `by_epoch` contains a field below a path, such as `a.b` for `a`.

        The mapping `by_epoch` lists fields whose value in each epoch enters stage keys.

        Args:
            path: Dotted name of the group.

        Example:
            >>> from mixsweep.plugins import Keying
            >>> keying = Keying(by_epoch={"mix.switch": "The law of each epoch enters."})
            >>> keying.names_below("mix"), keying.names_below("mix.switch")
            (True, False)
        """
        return any(named.startswith(f"{path}.") for named in self.by_epoch)
