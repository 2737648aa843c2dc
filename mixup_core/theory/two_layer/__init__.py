"""The problem `two-layer`: a two-layer network on multi-view data made of patches.

In multi-view data, a point has several features of its class, each of which alone shows the class.

Source: Chidambaram et al. 2023, arXiv:2210.13512, section 4.
"""
