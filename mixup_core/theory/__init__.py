"""The synthetic settings of the papers as problems, with the exact values of their quantities."""
