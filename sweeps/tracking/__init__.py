"""MLflow, kept equal to the store."""
