"""Long fault runs: `make soak`.

Built by one engineer; whoever writes tests/faults leaves this folder alone.
"""
