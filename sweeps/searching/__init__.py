"""Searches: their space, their points, and what is selected of them."""
