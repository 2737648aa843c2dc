"""Problems with synthetic data, from papers on mixup, whose metrics can be checked by formulas."""
