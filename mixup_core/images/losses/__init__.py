"""The loss of an image under its mixed label: one loss a file, and the choice of them in `loss`."""
