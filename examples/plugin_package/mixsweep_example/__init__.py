"""A plugin of mixsweep: a law, an operation, a network, a dataset and a probe."""
