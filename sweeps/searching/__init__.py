"""Searches with Optuna: proposals, history, selection of the best point, and sources of runs."""
