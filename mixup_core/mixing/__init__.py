"""Mixing: weights and partners of images, what is done with them, and the loss of the result."""
