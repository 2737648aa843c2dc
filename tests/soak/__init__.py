"""Soak tests: hundreds of faults, and what they cost. `make soak` takes hours on two cores.

There is one module per kind of fault or load. Each publishes its measurements (`findings`) and
exits with 1 if a guarantee was broken. They refuse to run outside `tests/faults/in_namespace.sh`.
"""
