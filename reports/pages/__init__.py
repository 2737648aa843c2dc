"""Pages: the report of a study and what it is written into."""
