"""Detect plugins that draw from global random generators, which would change resumed runs."""

from collections.abc import Collection, Iterator
from typing import TypeVar

from mixup_core.plugins.source import PluginError

T = TypeVar("T")


def without_global_draws(items: Iterator[T], plugins: Collection[str], device: str) -> Iterator[T]:
    """Pass the items through; raise if plugin code drew from a global random generator.

    Python's `random` is not checked, because threads of libraries use it in this process. `mixsweep
    check` runs without such threads and checks it too.

    Args:
        items: Records, or parts of epochs.
        plugins: Names of the plugins that the run uses; without any, nothing is checked.
        device: Device on which the run trains.

    Raises:
        PluginError: If a global generator was used.
    """
    if not plugins:
        yield from items
        return
    from mixup_core.global_generators import PYTHON, watched

    while True:
        with watched(device) as found:
            item = next(items, None)
        if drawn := [name for name in found if name != PYTHON]:
            names = " and ".join(sorted(plugins))
            raise PluginError(
                f"plugin {names}: a run that uses it drew from the global generator of "
                f"{' and '.join(drawn)}, so that a resumed run would have other numbers; draw from "
                f"the generator that the method is given; mixsweep check {names} names the entry"
            )
        if item is None:
            return
        yield item
