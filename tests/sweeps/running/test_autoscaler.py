import pytest

from sweeps.running.autoscaler import growth_in

TEXT = """======== Autoscaler status: 2026-11-25 04:44:24.406180 ========
Node status
---------------------------------------------------------------
Active:
{active}
Idle:
{idle}
Pending:
 b30660a4-14c8-482a-8d16-2794d506d743: gpu,
Recent failures:
 (no failures)

Resources
---------------------------------------------------------------
Total Usage:
 0.0/1.0 CPU
 0B/11.45GiB memory
"""
NODE = "node_f172147d0046fc73064927e78b3a981b6355467827af77f6eb32b8f4"


@pytest.mark.parametrize(
    ("active", "idle", "growth"),
    [
        (f" 1 {NODE}", "", "by hand"),
        (f" 1 {NODE}\n 1 {NODE}", f" 1 {NODE}", "by hand"),
        (" (no active nodes)", " 1 head", "autoscaler"),
        (" 2 gpu", f" 1 {NODE}", "autoscaler"),
        (" 1 node_gpu", "", "autoscaler"),
        ("", "", "autoscaler"),
    ],
)
def test_growth_is_by_hand_if_nodes_have_no_node_type(active: str, idle: str, growth: str) -> None:
    assert growth_in(TEXT.format(active=active, idle=idle)) == growth
    assert growth_in("") == "autoscaler"
