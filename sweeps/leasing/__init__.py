"""Leases: they ensure that each study has one driver."""
