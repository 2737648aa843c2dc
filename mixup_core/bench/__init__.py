"""Measure what image training costs on a device, beside a pipeline like that of the papers."""
