"""Control groups of this process: the folders in which Linux keeps its limits and counters."""

from collections.abc import Iterator
from pathlib import Path

_TOP = Path("/sys/fs/cgroup")
_OWN = Path("/proc/self/cgroup")


def control_groups(controller: str) -> Iterator[tuple[int, list[Path]]]:
    """Yield the version of each hierarchy and the folders of its groups, the outermost last.

    Args:
        controller: Name of a controller of version 1; version 2 has one hierarchy for all.
    """
    for line in text_of(_OWN).splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        top = _TOP / controller if controllers else _TOP
        group = top / path.lstrip("/")
        places = [place for place in (group, *group.parents) if place.is_relative_to(top)]
        yield (1 if controllers else 2), places


def text_of(file: Path) -> str:
    """Return the text of a file of the system; empty if it cannot be read."""
    try:
        return file.read_text()
    except OSError:
        return ""
