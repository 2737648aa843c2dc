"""Global draws: detect plugins that draw random numbers from global generators.

Such draws would make a resumed run differ from an uninterrupted one.
"""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import TypeVar

from mixup_core.plugins.source import PluginError
from mixup_core.records import EpochRecord

T = TypeVar("T")


@contextmanager
def without_global_draws(
    plugins: Collection[str], device: str, *, is_quick: bool = False
) -> Iterator[None]:
    """Raise an error if code in the block draws from a global random generator.

    Python's `random` is not checked, because threads of libraries use it in this process. `mixsweep
    check` runs without such threads and checks it too.
    """
    if not plugins:
        yield
        return
    from mixup_core.seeding import watched

    with watched(device, may_use_python=True, is_quick=is_quick) as drawn:
        yield
    if drawn:
        names = " and ".join(sorted(plugins))
        raise PluginError(
            f"plugin {names}: a run that uses this plugin drew from the global random generator of "
            f"{' and '.join(drawn)}, so that a resumed run would have other results; draw from "
            "the generator that the plugin's method gets as an argument; `mixsweep check "
            f"{names}` shows which part of the plugin does this"
        )


def each_without_global_draws(
    items: Iterator[T], plugins: Collection[str], device: str
) -> Iterator[T]:
    """Yield the items of a process; raise an error if an epoch used a global random generator.

    The check is made once per epoch, as reading the state of a generator takes longer than a step.
    """
    while True:
        with without_global_draws(plugins, device, is_quick=True):
            for item in items:
                if isinstance(item, EpochRecord):
                    break
                yield item
            else:
                return
        yield item
