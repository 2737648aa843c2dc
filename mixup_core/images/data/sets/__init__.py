"""Published data sets, one per file: facts, files with their digests, sources and reader."""
