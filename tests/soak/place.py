"""Place: where a soak run keeps its homes, and the refusal to run anywhere but in namespaces."""

import os
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from tests.conftest import CommandLine


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """A scratch folder that ends with the namespace it lies in."""

    folder: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="soak-")))

    def __post_init__(self) -> None:
        """Check the namespace.

        Raises:
            SystemExit: Outside of `tests/faults/in_namespace.sh`.
        """
        outer = os.environ.get("OUTER_PIDNS")
        if outer is None or str(Path("/proc/self/ns/pid").readlink()) == outer:
            raise SystemExit("faults are caused in namespaces of their own only: make soak")

    def home(self, name: str, **extra: str) -> CommandLine:
        """Return a command line on the home of that name."""
        return CommandLine(home=self.folder / name, data=self.folder / "data", extra=extra)
