"""What a step minimises: one objective a file, and the choice of them in `objective`."""
