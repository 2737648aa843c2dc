"""The data sets: what is known of them, their files, and how they are read."""
