"""What a run measures of itself beside its errors: probes, and the choice of them in `probes`."""
