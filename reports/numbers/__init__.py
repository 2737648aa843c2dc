"""Numbers: statistics, families of comparisons, and other results computed from a study's runs."""
