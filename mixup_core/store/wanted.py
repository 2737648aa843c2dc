"""Wanted stages: names of the files by which one driver asks another to store a stage's state."""

from mixup_core.store.names import checked


def wanted_name(stage: str) -> str:
    """Return the name of the file that asks other drivers to store a state, from its stage key."""
    return f"wanted/{checked(stage)}"
