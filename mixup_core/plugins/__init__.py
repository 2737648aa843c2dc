"""Plugins: models, laws, datasets, problems and the like from a user's file or a package."""
