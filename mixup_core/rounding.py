"""Rounding: computed numbers rounded so that they can enter a key."""


def rounded(value: float) -> float:
    """Round a computed number to 12 significant digits before it enters a key.

    With more digits, keys would depend on the last bits of the mathematical library.
    """
    return float(f"{value:.12g}")
