"""Run all benches, each in its own process, and write their measurements and one table of ratios.

    python -m tests.bench [BENCHES ...] [--quick] [--out FOLDER]

If a bench fails, the others still run, and the exit code is not 0. `--quick` only checks that all
benches work: it takes minutes, with sizes that are too small for meaningful numbers.
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.bench.pairs import arguments_of
from tests.bench.ratios import write_ratios
from tests.soak.findings import MEASUREMENTS

LEAST: Mapping[str, tuple[str, ...]] = {
    "training": ("--rounds", "1", "--images", "50"),
    "overhead": ("--pairs", "1", "--seeds", "1"),
    "scale": ("20", "--more", "2", "2"),
    "growth": ("20", "40", "--bucket", "20"),
    "races": ("2", "--orders", "5", "--on", "digits"),
}
"""Options that make a bench quick, by its module. Benches that measure wall time (overhead, scale)
need an otherwise idle machine; the others measure CPU time.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benches named on the command line, print the table and return the exit code."""
    parser = arguments_of(__doc__)
    parser.add_argument("benches", nargs="*", metavar="BENCH", help=f"of {', '.join(LEAST)}")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args(arguments)
    if unknown := set(options.benches) - set(LEAST):
        parser.error(f"no such bench: {', '.join(sorted(unknown))}")
    if options.quick and options.out is None:
        with tempfile.TemporaryDirectory(prefix="bench-") as folder:
            return run(options.benches or LEAST, Path(folder), quick=True)
    out = options.out or MEASUREMENTS
    return run(options.benches or LEAST, out, quick=options.quick)


def run(benches: Sequence[str] | Mapping[str, object], out: Path, *, quick: bool) -> int:
    """Run benches one after the other; return 1 if one failed."""
    failed = []
    for name in benches:
        started = time.monotonic()
        least = LEAST[name] if quick else ()
        command = [sys.executable, "-m", f"tests.bench.{name}", *least, "--out", str(out)]
        code = subprocess.run(command, check=False).returncode
        seconds = time.monotonic() - started
        print(f"{name}: {seconds:.0f} s" + (f", failed with {code}" if code else ""), flush=True)  # noqa: T201
        failed += [name] if code else []
    print(write_ratios(out).read_text(encoding="utf-8"))  # noqa: T201
    print(f"{len(benches) - len(failed)} of {len(benches)} benches finished")  # noqa: T201
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
