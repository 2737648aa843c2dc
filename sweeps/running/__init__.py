"""Running: trains the runs of a launch (with Ray or in one process) and shows the progress."""
