"""A tree of dataclasses with every form of field: groups, choices, and lists of either."""

from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal

from mixup_core.config.limits import Among
from mixup_core.laws import Beta, Erm, Law, Midpoint
from mixup_core.rules import require


@dataclass(frozen=True, kw_only=True, slots=True)
class Leg:
    """A group that is used in lists and contains a choice."""

    law: Law
    until: int | None = None

    def __post_init__(self) -> None:
        require(self.until is None or self.until >= 1, "until >= 1", self, "until")


@dataclass(frozen=True, kw_only=True, slots=True)
class Straight:
    tag: ClassVar = "straight"


@dataclass(frozen=True, kw_only=True, slots=True)
class Winding:
    tag: ClassVar = "winding"

    legs: tuple[Leg, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Ramp:
    tag: ClassVar = "ramp"

    shape: Literal["up", "down"] = "up"
    steps: tuple[float, ...] = (0.5, 1.0)
    law: Law = field(default_factory=Midpoint)


@dataclass(frozen=True, kw_only=True, slots=True)
class Wrapped:
    """A dataclass whose only field is a group with a field of the same name."""

    tag: ClassVar = "wrapped"

    until: Leg


Road = Straight | Winding | Ramp | Wrapped


@dataclass(frozen=True, kw_only=True, slots=True)
class Bus:
    name: ClassVar = "bus"

    seats: int = 40
    speed: float = 1.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Bike:
    name: ClassVar = "bike"

    speed: float = 0.5

    def __post_init__(self) -> None:
        require(self.speed <= 2, "speed <= 2", self, "speed")


Vehicle = Bus | Bike


@dataclass(frozen=True, kw_only=True, slots=True)
class Stay:
    place: Annotated[str, Among(("inn", "tent"))] = "inn"
    is_paid: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Journey:
    road: Road = field(default_factory=Straight)
    detour: Road | None = None
    vehicle: Vehicle = field(default_factory=Bus)
    spare: Vehicle | None = None
    stay: Stay = field(default_factory=Stay)
    days: int
    roads: tuple[Road, ...] = ()
    fleet: tuple[Vehicle, ...] | None = None
    stops: tuple[Leg | Erm | Beta, ...] = ()
    cost: float | None = None

    def __post_init__(self) -> None:
        require(self.days >= 1, "days >= 1", self, "days")


JOURNEY = Journey(days=3)
