"""The problem `images`: its config, its training, its models and measurements."""
