"""Imports that a process of Ray does when it begins, while it waits for its first run.

Ray imports this file there, and would end the process at an error that is no `ImportError`.
"""

import importlib
import os
from contextlib import suppress

MODULES = "MIXSWEEP_AHEAD"
"""Variable that holds the names of modules, with commas between them."""

for _module in filter(None, os.environ.get(MODULES, "").split(",")):
    with suppress(Exception):  # the first run that needs it says what is wrong
        importlib.import_module(_module)
