"""The state of a study's runs: what is planned, stored and failed, and the ledger of launches."""
