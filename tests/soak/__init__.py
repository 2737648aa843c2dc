"""Long fault runs: `make soak`.

Another engineer builds this folder and the Makefile target `soak` now; whoever writes tests/faults leaves both alone.
"""
