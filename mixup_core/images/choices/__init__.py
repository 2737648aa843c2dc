"""Choices of a training configuration, one per file."""
