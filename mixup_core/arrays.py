"""Floats: type alias of NumPy arrays of float64."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
