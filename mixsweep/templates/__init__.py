"""File templates that `mixsweep new` copies into a new folder."""
