"""One driver per study."""
