"""The problem `two-layer`: a two-layer network on multi-view patches (arXiv:2210.13512)."""
