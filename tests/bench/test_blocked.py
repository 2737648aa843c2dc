"""Simulated GPUs that wait for the driver, in cases whose result is known without a simulation."""

import pytest

from tests.bench.blocked import busy_share, main


def test_one_gpu_is_idle_while_the_driver_handles_the_end_of_each_run() -> None:
    share = busy_share(1, 3.0, ends_per_second=1.0, runs=2_000)
    assert share == pytest.approx(3 / 4, abs=0.005)


def test_the_busy_share_is_limited_by_a_driver_that_is_too_slow() -> None:
    share = busy_share(100, 5.0, ends_per_second=2.0, runs=50)
    assert share == pytest.approx(2 * 5 / 100, rel=0.02)


def test_a_driver_with_little_to_do_leaves_gpus_busy() -> None:
    assert busy_share(10, 600.0, ends_per_second=40.0, runs=50) > 0.9995


def test_the_table_has_a_row_for_each_length(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--runs", "3"])
    rows = capsys.readouterr().out.splitlines()
    assert [row.split(" | ")[0] for row in rows[2:]] == ["| 5", "| 95", "| 600"]
