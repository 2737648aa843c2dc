"""Losses of images with mixed labels, one per file."""
