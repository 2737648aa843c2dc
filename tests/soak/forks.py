"""Forks: a grid of switch epochs, shared and unshared: time saved, and equal results."""

import argparse
import time
from pathlib import Path

from mixup_core.keys import stage_keys
from tests.faults.launches import Launch, Task
from tests.soak.findings import publish
from tests.soak.place import Place

GRID = str(Path(__file__).with_name("switching.yaml"))
POINTS = 11


def main() -> None:
    """Run the grid, then one study per arm, and publish; exit with 1 if results differ."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=20, help=f"a multiple of {POINTS - 1}")
    options = parser.parse_args()
    step = options.epochs // (POINTS - 1)
    base = (f"seeds={options.seeds}", f"base.epochs={options.epochs}")
    switches = list(range(0, options.epochs + 1, step))
    place = Place()
    shared = Task(GRID, (*base, f"grid.mix.switch_epoch={switches}"))
    planned = place.home("shared").json("plan", *shared.arguments)
    started = time.monotonic()
    with Launch(place.home("shared"), shared) as launch:
        launch.end(0)
    minutes = (time.monotonic() - started) / 60
    results = shared.results(launch.store)
    trained = {
        (key, fact.stored_at_ms)
        for result in results
        for key, fact in zip(stage_keys(result.run.config), result.facts, strict=True)
    }
    differing = []
    for switch_epoch in switches:
        alone = Task(GRID, (*base, f"grid.mix.switch_epoch=[{switch_epoch}]"))
        home = place.home(f"unshared-{switch_epoch}")
        with Launch(home, alone) as launch:
            launch.end(0)
        for result in alone.results(launch.store):
            (other,) = (r for r in results if r.run.key == result.run.key)
            assert result.stage is not None
            assert other.stage is not None
            if (result.records, result.stage.state) != (other.records, other.stage.state):
                differing.append(f"t={switch_epoch} seed={result.run.seed}")
    naive = sum(result.run.config.epochs for result in results)
    figures = {
        "switch_epochs": switches,
        "seeds": options.seeds,
        "epochs_naive": naive,
        "epochs_planned": planned["epochs_planned"],
        "epochs_trained": len(trained),
        "saving": naive / len(trained),
        "runs_identical_to_unshared": len(results) - len(differing),
        "runs": len(results),
        "differing": differing,
        "minutes_shared": minutes,
    }
    publish("forks", f"{len(switches)} switch epochs x {options.seeds} seeds", figures)
    raise SystemExit(1 if differing else 0)


if __name__ == "__main__":
    main()
