"""Files for machines, and submission to a cluster."""
