"""Open writes: Ctrl-C under Ray ends the workers when no state is half written."""

import subprocess
import sys
import threading
from pathlib import Path

from sweeps.running.open_writes import open_write, wait_for_writes

_INTERRUPTED = """
import sys, time
from pathlib import Path
from sweeps.machine.scratch import scratch
from sweeps.running.open_writes import WRITING, open_write
from sweeps.running.placement import Placement
from sweeps.running.ray_cluster import cluster

begun, written = map(Path, sys.argv[1:])
try:
    with scratch() as folder, cluster(Placement(slots=1), 1, folder):
        import ray

        @ray.remote
        def write(file):
            with open_write(file):
                begun.touch()
                time.sleep(1.0)
                written.touch()

        task = write.remote(str(folder / WRITING))
        while not begun.exists():
            time.sleep(0.01)
        raise KeyboardInterrupt
except KeyboardInterrupt:
    print(written.exists())
"""


def test_an_interrupted_launch_with_ray_finishes_the_state_that_a_worker_writes(
    tmp_path: Path,
) -> None:
    files = [str(tmp_path / name) for name in ("begun", "written")]
    command = [sys.executable, "-c", _INTERRUPTED, *files]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout == "True\n"


def test_no_write_begins_while_a_driver_ends(tmp_path: Path) -> None:
    file, begun = tmp_path / "writing", threading.Event()

    def write() -> None:
        with open_write(str(file)):
            begun.set()

    wait_for_writes(file)
    threading.Thread(target=write, daemon=True).start()
    assert not begun.wait(0.2)
