"""Templates: the files that `mixsweep init` writes."""
