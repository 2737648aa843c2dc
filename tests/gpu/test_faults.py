"""Faults of a real GPU: each error of the driver is recognised as the fault that it is."""

import pytest

from tests.gpu.device import needs_gpu
from tests.interpreters import run_python

pytestmark = needs_gpu

FAULTS = {
    "torch.empty(1 << 46, device='cuda')": "memory",
    "torch.cuda.set_per_process_memory_fraction(1e-3); torch.empty(1 << 30, device='cuda')": (
        "memory"
    ),
    "torch.zeros(3, device='cuda')[torch.tensor([7], device='cuda')].sum().item()": "kernel",
    "torch.nn.functional.nll_loss(torch.zeros(2, 3, device='cuda'), torch.tensor([0, 9], "
    "device='cuda')).item()": "kernel",
    "os.environ['CUDA_VISIBLE_DEVICES'] = ''; torch.zeros(1, device='cuda')": "device",
}


@pytest.mark.parametrize("statement", FAULTS)
def test_a_fault_of_a_real_gpu_is_recognised(statement: str) -> None:
    """Each runs in a process of its own, because some of these errors leave the GPU unusable."""
    program = (
        "import os, torch\n"
        "from mixup_core.faults import fault_of\n"
        f"try:\n    {statement}\n"
        "except Exception as error:\n    print(fault_of(error), type(error).__name__, error)\n"
    )
    done = run_python(program, check=True)
    assert done.stdout.startswith(f"{FAULTS[statement]} "), done.stdout + done.stderr
