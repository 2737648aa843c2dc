"""The store of trained results: files under content keys, on a disk or in a bucket."""
