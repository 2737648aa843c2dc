"""Problems on synthetic data from papers on mixup, where measured values have exact references."""
