"""The synthetic settings of the papers as problems, with their exact quantities."""
