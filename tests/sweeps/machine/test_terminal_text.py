"""Terminal text: long names keep both ends."""

import pytest

from sweeps.machine.terminal_text import shortened


@pytest.mark.parametrize("length", [8, 11, 20])
def test_a_long_name_keeps_both_ends_within_its_length(length: int) -> None:
    name = "law=beta(0.2) lr=0.1 epochs=300"
    short = shortened(name, length)
    assert len(short) == length
    head, tail = short.split("...")
    assert name.startswith(head)
    assert name.endswith(tail)
    assert shortened("erm", length) == "erm"
