"""The machine that drives a study: processes, signals, scratch folders, SQLite files, the home."""
