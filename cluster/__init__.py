"""Configuration files for clusters, and submission of a launch to one."""
