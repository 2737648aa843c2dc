"""A launch on Ray: what trains, where, and who watches."""
