"""Reading: parse and check study files."""
