"""Colours: colour and dashes of each arm, equal in all figures of a study."""

from collections.abc import Mapping, Sequence

from mixup_core.problem import Config, problem_of

# Okabe and Ito's palette for colour-blind readers, without yellow, which is too faint.
_BLUE, _ORANGE, _GREEN = "#0072B2", "#E69F00", "#009E73"
_OTHERS = ("#CC79A7", "#56B4E9", "#D55E00", "#000000")
_OF_METHODS = {"erm": _BLUE, "midpoint": _ORANGE, "uniform": _GREEN}

Dashes = str | tuple[float, tuple[float, ...]]
"""Dash pattern, as matplotlib writes it."""

LineStyle = tuple[str, Dashes]
"""Colour and dash pattern of a line."""

Styles = Mapping[str, LineStyle]
"""Colour and dashes of each arm, by its name."""

_DASHES: tuple[Dashes, ...] = ("-", "--", ":", "-.", (0, (6, 1, 1, 1, 1, 1)), (0, (8, 3)))


def arm_styles(arms: Mapping[str, Config]) -> dict[str, LineStyle]:
    """Return the colour and dashes (here called look) of each arm in figures, in the arms' order.

    ERM, midpoint and uniform mixup have a fixed colour, the same in all studies. The first arm that
    trains with one of these methods gets its colour. The other arms take the remaining colours in
    order. When these are used up, the colours are repeated with other dashes.
    """
    named: dict[str, LineStyle] = {}
    taken = set()
    for arm, config in arms.items():
        method = problem_of(config).presentation.method(config)
        if method in _OF_METHODS and method not in taken:
            taken.add(method)
            named[arm] = (_OF_METHODS[method], "-")
    free = [*_OTHERS, *(colour for method, colour in _OF_METHODS.items() if method not in taken)]
    others = [arm for arm in arms if arm not in named]
    for place, arm in enumerate(others):
        turn, colour = divmod(place, len(free))
        named[arm] = (free[colour], _DASHES[turn % len(_DASHES)])
    return {arm: named[arm] for arm in arms}


def line_styles(
    lines: Mapping[str, Sequence[str]],
    styles: Styles,
    taken: Sequence[LineStyle] = (),
) -> dict[str, LineStyle]:
    """Return the colour and dashes of each line that connects several arms in a figure.

    No two lines look alike. A line gets the colour and dashes of the first of its arms whose colour
    is still unused in the figure. If the colours of all its arms are used, the line gets an unused
    colour; if none is left, a used colour with other dashes.
    """
    order = {arm: place for place, arm in enumerate(styles)}
    colours = (*_OTHERS, *_OF_METHODS.values())
    palette = [(colour, dashes) for dashes in _DASHES for colour in colours]
    found: dict[str, LineStyle] = {}
    for label, arms in lines.items():
        own = [styles[arm] for arm in sorted(arms, key=order.__getitem__)]
        drawn = [*taken, *found.values()]
        used = {colour for colour, _ in drawn}
        free = [look for look in (*own, *palette) if look[0] not in used]
        free += [look for look in palette if look not in drawn]
        found[label] = (free or own)[0]
    return found
