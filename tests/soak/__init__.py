"""Faults by the hundred, and what they cost: `make soak`, hours on two cores.

One module per kind of fault or load; each publishes its figures (`findings`) and exits 1 if a
promise was broken. They refuse to run outside of `tests/faults/in_namespace.sh`.
"""
