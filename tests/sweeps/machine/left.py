"""Files of a launch that was killed: its scratch folder, and its record of processes."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from mixup_core.temporary import PREFIX

_LAUNCH = """
import os, sys, time
from pathlib import Path
import psutil
from mixup_core.temporary import temporary_folder
from sweeps.machine.scratch import recorded_members
members = [psutil.Process(int(pid)) for pid in sys.argv[3:]]
class Own(psutil.Process):
    def children(self, recursive=False):
        return members if recursive else []
psutil.Process = Own
with temporary_folder(Path(sys.argv[1]), sys.argv[2]) as folder:
    with recorded_members(folder):
        pass
    (folder / "ray").mkdir()
    print(folder, flush=True)
    os.kill(os.getpid(), 9)
"""


def left_by_a_dead_process(place: Path, members: Sequence[int] = (), prefix: str = PREFIX) -> Path:
    """Return the scratch folder of a launch that was killed.

    Args:
        place: Parent of the folder.
        members: Pids of the processes that the launch recorded.
        prefix: Beginning of the folder's name.
    """
    command = [sys.executable, "-c", _LAUNCH, str(place), prefix, *map(str, members)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False, env=os.environ)
    return Path(done.stdout.strip())
