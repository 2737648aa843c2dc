"""A launch: the engines that train runs, their placement, and the monitor of the progress."""
