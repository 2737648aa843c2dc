"""Published datasets, one file each: facts, files with digests, sources and reader."""
