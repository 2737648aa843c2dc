"""The choices of a training configuration, one per file."""
