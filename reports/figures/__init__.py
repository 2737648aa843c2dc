"""Figures: what a report draws, from the same numbers as its tables."""
