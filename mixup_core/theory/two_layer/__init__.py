"""The problem `two-layer`: a two-layer network on multi-view data made of patches.

Source: Chidambaram et al. 2023, arXiv:2210.13512, section 4.
"""
