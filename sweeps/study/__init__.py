"""The nouns of a study: arms, searches, spaces, claims, read-outs and budgets, as plain values."""
