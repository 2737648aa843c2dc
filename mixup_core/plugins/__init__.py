"""Plugins: entries of open catalogues that come from a user's file or an installed package."""
