"""Status of a study's runs, as read from the store: plans, results, failures, list of launches."""
