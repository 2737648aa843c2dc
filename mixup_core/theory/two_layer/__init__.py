"""The problem `two-layer`: a two-layer network on multi-view patches, Theorems 4.6 and 4.7."""
