"""The store of trained results: files named by hashes of configurations, on disk or in a bucket."""
