"""Tracking: copy the results of a study from the store to MLflow; the copy can be rebuilt."""
