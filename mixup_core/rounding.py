"""Rounding: computed numbers in the form in which they may enter a key."""


def rounded(value: float) -> float:
    """Round a computed number to the 12 significant digits that enter keys.

    With more digits, keys would depend on the last bits of a mathematical library.
    """
    return float(f"{value:.12g}")
