"""Configuration files and scripts that start clusters on which studies can be trained."""
