"""Device: the GPU of this machine, on which the tests of this folder run."""

import pytest
import torch

GPU = torch.device("cuda")
needs_gpu = pytest.mark.skipif(
    not torch.cuda.is_available(), reason="NOT CHECKED: no GPU on this machine"
)
