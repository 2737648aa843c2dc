"""Wanted stages: names of the objects by which one driver asks another to store a stage."""

from mixup_core.store.names import checked


def wanted_name(stage: str) -> str:
    """Return the name of the object by which a driver asks another to store the stage of a key."""
    return f"wanted/{checked(stage)}"
