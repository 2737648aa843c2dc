"""The state of a study's runs: plans, stored results, failures, and the ledger of launches."""
