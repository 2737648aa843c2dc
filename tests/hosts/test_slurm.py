"""`cluster/slurm.sbatch` unchanged, under a real Slurm; nodes are namespaces, GPUs are files.

Options of `sbatch` ask for fewer GPUs and CPUs than a node has.
"""

import re
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from sweeps.state.results import RunResult
from tests.faults.launches import wait_for
from tests.faults.nodes import gpu_of
from tests.hosts.conftest import Record
from tests.hosts.operators import (
    REPOSITORY,
    STUDY,
    Operator,
    assert_nothing_trained_twice,
    facts,
    places_in_use,
    results,
)
from tests.hosts.patience import Found, num_epochs, wait_while_it_moves
from tests.hosts.slurm import Slurm, missing_programs

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600, func_only=True)]

FILE = REPOSITORY / "cluster" / "slurm.sbatch"
TWO_OF_FOUR = "--gpus-per-node=2 --cpus-per-task=2"
BORDER = (
    "Slurm is real; its nodes are namespaces of one machine, and their GPUs are empty files that "
    "no run computes on."
)
RUNS = f"{' '.join(STUDY)} --device cpu"
SHORT, LONGER = "base.epochs=20", "base.epochs=60"
FEW_RUNS = f"{RUNS} --set {{}} --set seeds=2"
ENDED = {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Site:
    """A Slurm cluster, and a person on its login host."""

    slurm: Slurm
    operator: Operator
    store: Path

    def send(self, options: str, study: str = RUNS) -> str:
        """Submit a job and return its number."""
        said = self.operator.type(f"sbatch {options} {FILE} {study}")
        (number,) = re.findall(r"Submitted batch job (\d+)", said)
        return str(number)

    def output(self, name: str) -> str:
        """Return the output of a job so far."""
        path = self.operator.folder / "work" / f"slurm-{name}.out"
        return path.read_text() if path.exists() else ""

    def wait(self, number: str, reached: Callable[[dict[str, str]], Found | None]) -> Found:
        """Return the first true result of a function of the state of a job, which must not end."""

        def found() -> Found | None:
            state = self.slurm.job(number)
            result = reached(state)
            assert result or state["JobState"] not in ENDED, self.output(number)
            return result

        def moved() -> object:
            stages = sorted(path.name for path in self.store.glob("stages/*/*"))
            return self.slurm.job(number)["JobState"], len(self.output(number)), stages

        return wait_while_it_moves(found, moved)

    def wait_until_busy(self, number: str, *overrides: str) -> tuple[RunResult, ...]:
        """Return the results of the runs once they train on four GPUs."""

        def busy(_: object) -> tuple[RunResult, ...] | None:
            found = results(self.store, *overrides)
            return found if len(places_in_use(found)) == 4 else None

        return self.wait(number, busy)

    def wait_for_restart(self, number: str) -> None:
        """Wait until a job has been queued again."""
        self.wait(number, lambda state: state.get("Restarts") == "1")

    def wait_for_end(self, number: str) -> dict[str, str]:
        """Return the final state of a job once it holds no node."""
        state = self.wait(number, lambda state: state if state["JobState"] in ENDED else None)
        wait_for(lambda: set(self.slurm.states()) <= {"idle", "down", "down*"}, timeout=300)
        return state


def _ends_whole(
    site: Site, number: str, before: tuple[RunResult, ...], *overrides: str
) -> dict[str, object]:
    """Return measurements of a job that completes four runs, with each epoch trained once.

    Args:
        site: The cluster.
        number: Number of the job.
        before: Results of the runs at an earlier time.
        overrides: Settings of the study.
    """
    state = site.wait_for_end(number)
    after = results(site.store, *overrides)
    assert [result.outcome for result in after] == ["complete"] * 4, site.output(number)
    assert state["JobState"] == "COMPLETED", f"{state}\n{site.output(number)}"
    assert_nothing_trained_twice(facts(before), facts(after))
    return {
        "times queued again": state["Restarts"],
        "runs done": len(after),
        "epochs in all": num_epochs(after),
        "epochs trained twice of those seen as stored": 0,
    }


@pytest.fixture
def site(hosts: Path, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Site]:
    """Start a cluster with the number of nodes that the test asks for; two by default."""
    if missing := missing_programs():
        pytest.skip(f"not installed: {', '.join(missing)}; NO SLURM WAS STARTED")
    home = tmp_path / "runs"
    slurm = Slurm.start(hosts, getattr(request, "param", 2))
    operator = Operator.arrives(
        tmp_path, slurm.login, **slurm.environment, VENV=sys.prefix, MIXSWEEP_HOME=str(home)
    )
    yield Site(slurm=slurm, operator=operator, store=home / "store")
    slurm.stop()


RAY = """#!/bin/bash
# Stands in for Ray: `symmetric-run` starts the command behind -- on the first node, others wait.
[ "$1" = symmetric-run ] || exit 0
echo "$SLURMD_NODENAME: $*" | head -1
[ "$SLURM_NODEID" = 0 ] || exec sleep 100
while [ "$1" != -- ]; do shift; done
shift
exec "$@"
"""
PYTHON = """#!/bin/bash
echo "trained on $SLURM_JOB_NUM_NODES nodes: $*"
exit 3
"""


def _without_ray(site: Site, tmp_path: Path) -> Site:
    """Return a site whose jobs start scripts instead of Ray and the study."""
    programs = tmp_path / "venv" / "bin"
    programs.mkdir(parents=True)
    for name, text in (("ray", RAY), ("python", PYTHON)):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    operator = replace(
        site.operator, environment={**site.operator.environment, "VENV": str(programs.parent)}
    )
    (tmp_path / "laptop" / ".config" / "mixsweep").mkdir(parents=True)
    (tmp_path / "laptop" / ".config" / "mixsweep" / "ray_token").write_text("5a")
    return replace(site, operator=operator)


KINDS = ("gpus", "cpus")
GPU_LINE, CPU_LINE = "#SBATCH --gpus-per-node=4\n", "#SBATCH --cpus-per-task=32\n"


def test_ray_gets_the_gpus_and_cpus_of_its_node_and_the_job_the_exit_code_of_the_study(
    site: Site, tmp_path: Path
) -> None:
    """A quick test without Ray; long tests start what the file starts."""
    site = _without_ray(site, tmp_path)
    text = FILE.read_text()
    assert GPU_LINE in text
    assert CPU_LINE in text
    cases = {
        "--gpus-per-node=2 --cpus-per-task=2": ([2, 2], 2, 3),
        "--gres=gpu:2 --cpus-per-task=2": ([2, 2], 2, 3),
        "--gpus=3": ([2, 1], 32, 3),
        "--gpus-per-task=3 --cpus-per-task=4": ([3, 3], 4, 3),
        "": ([], 0, 2),
        "digits --gpus-per-run 0": ([0, 0], 32, 3),
    }
    for asked, (gpus, cpus, code) in cases.items():
        options, study, words = asked.partition("digits")
        lines = "".join(f"#SBATCH {option}\n" for option in options.split())
        file = site.operator.folder / "work" / "edited.sbatch"
        file.write_text(text.replace(GPU_LINE, lines).replace(CPU_LINE, ""))
        wanted = [sorted(gpus), [cpus] * len(gpus)]
        for _ in range(3):  # the end of the first node may come before the second one starts
            sent = site.operator.type(f"sbatch {file} {study or 'digits'}{words}")
            (number,) = re.findall(r"Submitted batch job (\d+)", sent)
            state, said = site.wait_for_end(number), site.output(number)
            started = re.findall(r"^n\d: symmetric-run .*", said, re.MULTILINE)
            found = [
                sorted(map(int, re.findall(rf"--num-{kind} (\d+)", "\n".join(started))))
                for kind in KINDS
            ]
            if len(started) == len(gpus):
                break
        assert (state["ExitCode"], found) == (f"{code}:0", wanted), f"{asked}\n{said}"
        assert ("Slurm gave this job GPUs, but none to its step on n" in said) == (code == 2), said
        assert state["JobState"] == "FAILED"
        if code == 3:
            assert f"nodes: -u -m mixsweep run digits{words} --address 10.77.0.51:6379" in said
            assert said.endswith("exit code 3\n")


@pytest.mark.long
def test_a_job_uses_all_requested_gpus_and_frees_its_nodes_at_the_end(
    site: Site, record: Record
) -> None:
    began = time.monotonic()
    study = f"{RUNS} --set {SHORT}"
    site.operator.hold()
    number = site.send(TWO_OF_FOUR, study)
    site.wait_until_busy(number, SHORT)
    all_busy = time.monotonic() - began
    steps = site.slurm.ask("scontrol", "show", "step", number)
    assert "CPUs=4" in steps, f"a step has two nodes with two CPUs each\n{steps}"
    site.operator.type("sinfo; squeue")
    site.operator.release()
    state = site.wait_for_end(number)
    idle = time.time()
    found = results(site.store, SHORT)
    assert [result.outcome for result in found] == ["complete"] * 8, site.output(number)
    assert state["JobState"] == "COMPLETED", f"{state}\n{site.output(number)}"
    assert {gpu_of(result)[1] for result in found} == {"0", "1"}
    last = max(fact.stored_at_ms for result in found for fact in result.facts) / 1000
    assert idle - last < 80, "nodes wait 90 s for a head that is gone"
    wait_for(lambda: not site.slurm.processes("raylet"), timeout=10)
    site.operator.type(f"sinfo; cat slurm-{number}.out")
    again = site.send(TWO_OF_FOUR, study)
    site.wait_for_end(again)
    assert "8 runs are stored, nothing to train" in site.operator.type(f"cat slurm-{again}.out")
    record(
        "slurm-two-nodes",
        "cluster/slurm.sbatch under Slurm on hosts made of namespaces, 8 runs",
        {
            "GPUs of a node, of which the job asked for": "4, 2",
            "GPUs busy at once, on 2 nodes": 4,
            "seconds from sbatch until then": round(all_busy, 1),
            "runs done": len(found),
            "seconds from the last epoch until no node was held": round(idle - last, 1),
            "the same command again": "8 runs are stored, nothing to train",
        },
        site.operator.first_use("slurm.sbatch", BORDER),
    )


@pytest.mark.long
def test_a_job_near_its_time_limit_is_requeued_and_resumes(site: Site, record: Record) -> None:
    began, few = time.monotonic(), (LONGER, "seeds=2")
    site.operator.hold()
    number = site.send(f"{TWO_OF_FOUR} --time=4", FEW_RUNS.format(LONGER))
    site.wait_until_busy(number, *few)
    site.wait_for_restart(number)
    queued = time.monotonic() - began
    assert "the time is nearly up: queued again" in site.output(number)
    before = results(site.store, *few)
    assert any(result.facts for result in before)
    assert not all(result.outcome == "complete" for result in before)
    site.operator.release()
    site.operator.type("squeue")
    site.wait(number, lambda state: state["JobState"] == "RUNNING")
    started_again = time.monotonic() - began
    whole = _ends_whole(site, number, before, *few)
    record(
        "slurm-requeue",
        "cluster/slurm.sbatch with a time limit of 4 minutes, 4 runs",
        {
            "seconds from sbatch until the job was queued again": round(queued, 1),
            "epochs stored by then": num_epochs(before),
            "seconds from then until it ran again": round(started_again - queued, 1),
            **whole,
        },
    )


@pytest.mark.long
@pytest.mark.parametrize("site", [3], indirect=True)
def test_a_job_that_loses_a_node_continues_on_another_node(site: Site, record: Record) -> None:
    few = (LONGER, "seeds=2")
    site.operator.hold()
    number = site.send(TWO_OF_FOUR, FEW_RUNS.format(LONGER))
    before = site.wait_until_busy(number, *few)
    lost = site.slurm.nodes[1]
    lost.kill()
    site.operator.release()
    killed = time.monotonic()
    site.wait_for_restart(number)
    site.wait(number, lambda state: state["JobState"] == "RUNNING")
    moved = time.monotonic() - killed
    site.operator.type("sinfo; squeue")
    assert site.slurm.job(number)["NodeList"] == "n[1,3]"
    whole = _ends_whole(site, number, before, *few)
    record(
        "slurm-lost-node",
        "cluster/slurm.sbatch on 2 of 3 nodes, one of which dies in training, 4 runs",
        {
            "GPUs busy at the loss, on 2 nodes": len(places_in_use(before)),
            "node lost in training": lost.name,
            "seconds until the job ran on other nodes": round(moved, 1),
            **whole,
        },
    )


@pytest.mark.long
def test_a_cancelled_job_frees_its_nodes_and_resumes_when_submitted_again(
    site: Site, record: Record
) -> None:
    few, study = (SHORT, "seeds=2"), FEW_RUNS.format(SHORT)
    site.operator.hold()
    number = site.send(TWO_OF_FOUR, study)
    busy = places_in_use(site.wait_until_busy(number, *few))
    site.operator.type(f"scancel {number}")
    cancelled = time.monotonic()
    site.operator.release()
    state = site.wait_for_end(number)
    freed = time.monotonic() - cancelled
    assert state["JobState"] == "CANCELLED"
    before = results(site.store, *few)
    again = site.send(TWO_OF_FOUR, study)
    whole = _ends_whole(site, again, before, *few)
    record(
        "slurm-cancelled",
        "cluster/slurm.sbatch cancelled in training and sent again, 4 runs",
        {
            "GPUs busy before, on 2 nodes": len(busy),
            "seconds from scancel until no node was held": round(freed, 1),
            "epochs stored by then": num_epochs(before),
            **whole,
        },
    )


@pytest.mark.long
def test_a_job_array_trains_one_study_in_each_job(site: Site, record: Record) -> None:
    work = site.operator.folder / "work"
    text = (work / "paced.yaml").read_text()
    for name in ("one", "two", "three"):
        changed = text.replace("study: paced", f"study: {name}").replace("seeds: 4", "seeds: 1")
        (work / f"{name}.yaml").write_text(changed)
    options = "--plugin paced.py --device cpu --set base.epochs=5"
    alone = f"--array=1-4%2 --nodes=1 {TWO_OF_FOUR}"
    number = site.send(alone, f"one.yaml two.yaml three.yaml {options}")
    wait_while_it_moves(
        lambda: not site.slurm.jobs("pending,running"),
        lambda: [len(site.output(f"{number}_{task}")) for task in (1, 2, 3, 4)],
    )
    for task, name in enumerate(("one", "two", "three"), start=1):
        said = site.output(f"{number}_{task}")
        assert f"{name}: 2 runs" in said, said
        assert said.endswith("exit code 0\n"), said
    assert "no study has the number 4" in site.output(f"{number}_4")
    record(
        "slurm-array",
        "cluster/slurm.sbatch as an array of three studies, two nodes at a time",
        {
            "studies done": 3,
            "runs done": 6,
            "exit codes": "0, 0, 0",
            "a fourth task": "ends with code 2: no study has its number",
        },
    )
