"""Launches of studies: checks before training, training, and the report after it."""
