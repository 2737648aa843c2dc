"""MLflow as a view of the store: written by the driver, and always possible to rebuild."""
