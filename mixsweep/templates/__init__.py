"""File templates that `mixsweep init` copies into a new folder."""
