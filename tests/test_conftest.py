"""Fixtures that every test has."""

import os

import pytest

from mixsweep.cli.ending import Ending
from mixsweep.cli.main import _end


def test_a_command_that_has_trained_cannot_end_the_process_of_pytest() -> None:
    with pytest.raises(pytest.fail.Exception, match=r"os\._exit\(2\) would end pytest"):
        _end(Ending(has_trained=True), 2, is_cut=False)


def test_a_fork_of_pytest_ends_with_its_own_exit_code() -> None:
    if (child := os.fork()) == 0:
        os._exit(7)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 7
