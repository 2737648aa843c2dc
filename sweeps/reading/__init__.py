"""Reading: turn a study file into a checked study."""
