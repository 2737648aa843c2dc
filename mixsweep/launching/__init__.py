"""The subcommands of `mixsweep`, one module for each."""
