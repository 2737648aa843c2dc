"""without_global_draws: runs of plugins must not draw what a resumed run would not have."""

from collections.abc import Collection, Iterator
from typing import TypeVar

from mixup_core.plugins.source import PluginError

T = TypeVar("T")


def without_global_draws(items: Iterator[T], plugins: Collection[str], device: str) -> Iterator[T]:
    """Yield what a run yields, unless something was drawn from a generator of the whole process.

    Python's own generator is left out: threads of libraries draw from it in this process. `mixsweep
    check`, where there are none, looks at it too.

    Args:
        items: Records, or parts of epochs.
        plugins: Names of the plugins that the run uses; without any nothing is looked at.
        device: Where the run trains.

    Raises:
        PluginError: If something was drawn.
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
