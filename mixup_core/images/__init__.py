"""The problem `images`: trains image classifiers."""
