"""Published datasets, one file each: facts, files with digests, sources, and a reading function."""
