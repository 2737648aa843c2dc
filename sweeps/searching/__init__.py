"""Searches with Optuna: proposals, history, and the selection of a winner."""
