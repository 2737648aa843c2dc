"""Control groups (cgroups): folders in which Linux keeps limits and counters of this process."""

from collections.abc import Iterator
from pathlib import Path

_TOP = Path("/sys/fs/cgroup")
_OWN = Path("/proc/self/cgroup")


def control_groups(controller: str) -> Iterator[tuple[int, list[Path]]]:
    """Yield the version (1 or 2) and the folders of the control groups that limit this process.

    There is one pair per hierarchy of groups; its folders go from the innermost to the outermost.

    Args:
        controller: Name of a version 1 controller, such as `memory`. Version 2 has one hierarchy
            for all controllers.
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
    """Return the text of a system file, such as one in /proc; empty if it cannot be read."""
    try:
        return file.read_text()
    except OSError:
        return ""
