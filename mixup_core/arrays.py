"""Floats: the type of NumPy arrays of double precision."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
