"""Training of image classifiers with mixup: `images`, the default problem of a study."""
