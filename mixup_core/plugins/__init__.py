"""Plugins: models, laws, datasets, problems and other parts from a user's file or a package."""
