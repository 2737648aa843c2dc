"""Leases: locks in the store which ensure that only one driver trains a study at a time."""
