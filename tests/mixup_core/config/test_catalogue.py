"""Catalogues are read like unions, and accept all members of a plugin or none."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

from mixup_core.config.catalogue import Catalogue, CatalogueError, add_all, catalogue_of
from mixup_core.config.checked import Checked
from mixup_core.config.limits import Positive
from mixup_core.config.parts import members
from mixup_core.config.written_forms import expected


class Shape(Checked, ABC):
    catalogue: ClassVar = Catalogue("shape")

    @abstractmethod
    def area(self) -> float: ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Point(Shape):
    tag: ClassVar = "point"

    def area(self) -> float:
        return 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Disc(Shape):
    tag: ClassVar = "disc"
    radius: Positive = 1.0

    def area(self) -> float:
        return 3.0 * self.radius**2


@dataclass(frozen=True, kw_only=True, slots=True)
class Square(Shape):
    tag: ClassVar = "square"
    side: Positive

    def area(self) -> float:
        return self.side**2


Shape.catalogue.add(Point, Disc)


def test_an_open_choice_has_the_members_of_its_catalogue() -> None:
    assert members(Shape) == (Point, Disc)
    assert members(Shape | None) == (Point, Disc, type(None))
    assert catalogue_of(Shape) is Shape.catalogue
    assert catalogue_of(Disc) is None, "a member is no choice"
    assert expected(Shape) == "point or {disc: RADIUS}"
    with pytest.raises(AssertionError, match="import its package first"):
        members(type("Empty", (), {"catalogue": Catalogue("empty")}))


def _frozen(**attributes: Any) -> Any:
    methods = {"area": lambda self: 0.0}
    return dataclass(frozen=True, kw_only=True)(type("New", (Shape,), methods | attributes))


@pytest.mark.parametrize(
    ("member", "message"),
    [
        (_frozen(tag="disc"), "the shape disc exists already and cannot be replaced"),
        (_frozen(tag="Dot!"), r"has the tag or name 'Dot!', which does not match \[a-z0-9\]"),
        (_frozen(), "has the tag or name '', which does not match"),
        (type("New", (Shape,), {"tag": "dot"}), "is not a frozen dataclass; write @dataclass"),
        (type("New", (Disc,), {"tag": "dot"}), "is not a frozen dataclass"),
        (dataclass(type("New", (Shape,), {"tag": "dot"})), "is not a frozen dataclass"),
        (
            dataclass(frozen=True)(
                type("New", (Shape,), {"tag": "dot", "__annotations__": {"size": float}})
            ),
            "has fields that are not keyword-only; add kw_only=True",
        ),
        (
            dataclass(frozen=True, kw_only=True)(type("New", (Shape,), {"tag": "dot"})),
            "the shape dot .* does not define area",
        ),
    ],
)
def test_an_invalid_class_is_refused_with_all_classes_added_together(
    member: Any, message: str
) -> None:
    with pytest.raises(CatalogueError, match=message):
        add_all([(Shape.catalogue, Square), (Shape.catalogue, member)])
    assert list(Shape.catalogue) == ["point", "disc"]
