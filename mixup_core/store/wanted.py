"""Wanted stages: names of the objects by which one driver asks another to store a stage."""

from mixup_core.store.names import checked


def wanted_name(stage: str) -> str:
    """Return the name of the file that asks other drivers to store a stage's state, by its key."""
    return f"wanted/{checked(stage)}"
