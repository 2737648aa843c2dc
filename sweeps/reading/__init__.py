"""From a study file to a checked study."""
