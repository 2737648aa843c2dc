"""The parts of a study as plain values: arms, searches, spaces, claims, read-outs and budgets."""
