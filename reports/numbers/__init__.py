"""Numbers: statistics, families of comparisons, and what is computed from a study's runs."""
