"""Figures: the plots of a report, drawn from the same numbers as its tables."""
