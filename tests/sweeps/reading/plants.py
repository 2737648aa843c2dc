"""A small configuration type with every form of field: groups, choices, lists, requirements."""

from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from mixup_core.config.limits import Among
from mixup_core.rules import require


@dataclass(frozen=True, kw_only=True, slots=True)
class Dry:
    """No water."""

    tag: ClassVar = "dry"


@dataclass(frozen=True, kw_only=True, slots=True)
class Drip:
    """Water by the hour."""

    tag: ClassVar = "drip"

    rate: float
    """Litres per hour, positive."""

    def __post_init__(self) -> None:
        require(self.rate > 0, "rate > 0", self, "rate")


@dataclass(frozen=True, kw_only=True, slots=True)
class Flood:
    """Water at once."""

    tag: ClassVar = "flood"

    depth: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Clay:
    """Soil that holds water."""

    name: ClassVar = "clay"

    depth: int = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Visit:
    """Care of a plant on one day."""

    day: int
    water: Dry | Drip | Flood = field(default_factory=Dry)


@dataclass(frozen=True, kw_only=True, slots=True)
class Bed:
    """Place of a plant."""

    soil: Clay = field(default_factory=Clay)
    width: float = 1.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Plant:
    """A plant and its care."""

    species: Annotated[str, Among(("rose", "fern"))]
    days: int
    bed: Bed = field(default_factory=Bed)
    water: Dry | Drip | Flood = field(default_factory=Dry)
    visits: tuple[Visit, ...] = ()
    label: str | None = None
