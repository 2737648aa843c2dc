"""What image training costs on a device, and beside the papers' kind of pipeline."""
