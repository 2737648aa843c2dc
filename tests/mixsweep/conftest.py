"""Fixtures of the rooms below, which the tests of the top floor use too."""

from tests.sweeps.conftest import client as client
from tests.sweeps.conftest import home as home
from tests.sweeps.conftest import study as study
from tests.sweeps.conftest import toy_problem as toy_problem
