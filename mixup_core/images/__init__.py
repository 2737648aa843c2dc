"""The problem `images`: training of image classifiers."""
