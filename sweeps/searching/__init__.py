"""Searches with Optuna: points to train, pruning, selection of the best point, confirmation."""
