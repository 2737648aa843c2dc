"""The machine that runs a driver: processes, signals, scratch folders, SQLite files, the home."""
