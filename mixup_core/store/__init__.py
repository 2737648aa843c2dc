"""What was trained, under content keys, on a disk or in a bucket."""
