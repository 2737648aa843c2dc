"""Losses of images with mixed labels, one file each; `loss` registers them."""
