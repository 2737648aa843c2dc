"""Wanted stages: names of the objects by which one driver asks another to store a stage."""

from mixup_core.store.names import checked


def wanted_name(stage: str) -> str:
    """Return the name of the object in a store that asks for a stage, from the key of the stage."""
    return f"wanted/{checked(stage)}"
