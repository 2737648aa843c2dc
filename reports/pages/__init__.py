"""Pages: the report of a study, and the documents that collect several reports."""
