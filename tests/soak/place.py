"""Place: the folder of a soak test's homes; it exists only inside namespaces."""

import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from tests.conftest import CommandLine
from tests.faults.namespaces import is_in_namespace


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """A scratch folder that ends with its namespace."""

    folder: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="soak-")))

    def __post_init__(self) -> None:
        """Check the namespace.

        Raises:
            SystemExit: Outside of `tests/faults/in_namespace.sh`.
        """
        if not is_in_namespace():
            raise SystemExit("faults are caused in namespaces of their own only: make soak")

    def home(self, name: str, **extra: str) -> CommandLine:
        """Return a command line on a home with the given name."""
        return CommandLine(home=self.folder / name, data=self.folder / "data", extra=extra)
