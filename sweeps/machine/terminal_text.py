"""Terminal text: shortens names to the length of a line."""


def shortened(name: str, length: int) -> str:
    """Return a name with at most `length` characters; a longer one gets `...` in its middle.

    The middle is cut because the names of a grid's arms differ at their ends.
    """
    if len(name) <= length:
        return name
    tail = max(0, length - 3) // 2
    return f"{name[: length - 3 - tail]}...{name[-tail:]}"
