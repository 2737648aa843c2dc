"""Terminal text: long names on a line of limited length."""


def shortened(name: str, length: int) -> str:
    """Return a name of at most `length` characters; a longer one has `...` in its middle.

    The names of a grid differ in their ends.
    """
    if len(name) <= length:
        return name
    tail = max(0, length - 3) // 2
    return f"{name[: length - 3 - tail]}...{name[-tail:]}"
