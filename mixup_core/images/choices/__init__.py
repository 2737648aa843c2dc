"""Parts of a training configuration that have several options, one per file."""
