"""Tables: the rows, cells and captions that a report prints."""
