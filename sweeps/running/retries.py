"""Retries: decides whether a run is tried again after a fault, and which devices get no more runs.

This module does not use Ray.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from mixup_core.faults import fault_of
from sweeps.machine.resources import control_groups, spell_limit, text_of
from sweeps.study.study import Run

_PROCESS_DEATHS = 3
"""Number of times that a run whose process died is tried again; after that the run has failed."""
_MEMORY_ATTEMPTS = 4
"""Number of attempts at a run that runs out of memory while other runs are training."""
_RUNS_IN_A_ROW = 2
"""Number of different runs that must fail on a device, without one that finishes between them,
before the device gets no more runs."""
_DEVICES = 2
"""Number of different devices on which a run must fail before the run itself counts as the
cause.
"""

_REDUCE = "reduce batch_size, the network or the image size, or use a machine with more memory"

_DEVICE_FAULT = re.compile(r"DeviceFaultError: (.*?): (\[[^\]]*\]): (.*)")
_KERNEL_FAULT = re.compile(r"KernelFaultError: (.*)")
NODE_HAS_DIED = "its node has died"
"""Part of Ray's error message about a process whose node was lost."""
_NODE_DIED = (NODE_HAS_DIED, "node has died", "node was preempted", "NodeDiedError")
_NO_REASON = (
    "Ray recorded no reason: the process was killed, or the disk for temporary files is full"
)
_KILLED_BY_RAY = re.compile(r"Memory usage (\d+)B exceeded threshold of (\d+)B")


class DeviceFaultError(Exception):
    """A faulty GPU or GPU driver made a run fail; the message names the device and the error."""

    def __init__(self, device: str, name: str, cause: str) -> None:
        super().__init__(f"{name}: [{device}]: {cause}")
        self.device = device

    def __reduce__(self) -> tuple[object, ...]:
        name, device, cause = str(self).split(": ", 2)
        return type(self), (device.strip("[]"), name, cause)


class KernelFaultError(Exception):
    """An error on a GPU that the run itself caused and that makes the process unusable."""


def advice() -> str:
    """Return advice for a run that lacks memory; it also names the limit of `ulimit -v`, if any."""
    limit = spell_limit()
    return f"{limit}; or {_REDUCE}" if limit else _REDUCE


def device_id(place: Mapping[str, str], *, is_node: bool = False) -> str:
    """Return a text that identifies the GPU of a run, or its node if it uses no GPU."""
    return place.get("node", "") if is_node else f"{place.get('node', '')}/{place.get('gpus', '')}"


@dataclass(frozen=True, kw_only=True, slots=True)
class MachineFault:
    """A fault of a process, node or device that ended one attempt at a run."""

    kind: Literal["memory", "device", "node", "process", "kernel"]
    cause: str
    """The cause, in one line."""
    device: str | None = None
    """Identity of the faulty device; None if no device is at fault."""
    name: str = ""
    """Name of the faulty device for messages; empty if no device is at fault."""

    @classmethod
    def of(cls, text: str, *, was_killed_for_memory: bool = False) -> "MachineFault":
        """Return the fault that an error text of Ray describes."""
        lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
        if device_fault := _DEVICE_FAULT.search(text):
            name, device, cause = device_fault.groups()
            return cls(kind="device", cause=cause, device=device.strip("[]"), name=name)
        if kernel_fault := _KERNEL_FAULT.search(text):
            return cls(kind="kernel", cause=kernel_fault[1])
        if any(words in text for words in _NODE_DIED):
            return cls(kind="node", cause="the node of the run was lost")
        if killed := _KILLED_BY_RAY.search(text):
            used, allowed = (int(count) / 1e9 for count in killed.groups())
            return cls(
                kind="memory",
                cause=f"Ray killed its process, because the node used {used:.1f} GB of memory and "
                f"may use {allowed:.1f} GB",
            )
        last = lines[-1] if lines else _NO_REASON
        if fault_of(text) == "memory":
            memory_lines = (line for line in reversed(lines) if fault_of(line) == "memory")
            return cls(kind="memory", cause=next(memory_lines, last))
        if was_killed_for_memory:
            return cls(kind="memory", cause="Linux killed its process for lack of memory")
        return cls(kind="process", cause=last)


@dataclass(frozen=True, kw_only=True, slots=True)
class RetryDecision:
    """The decision whether a run is tried again after a fault."""

    again: bool
    """True to try the run again."""
    message: str
    """One sentence about the run, for the console."""
    note: str = ""
    """One sentence about the launch, if its number of slots or its devices change; otherwise
    empty.
    """


@dataclass(kw_only=True, slots=True)
class Retries:
    """Decides which runs of a launch are tried again after faults; excludes faulty devices."""

    limit: int
    """Largest number of parallel runs; reduced when several runs together run out of memory."""
    on_gpu: bool = False
    sick: dict[str, str] = field(default_factory=dict)
    """Name of each device that gets no more runs, by identity of the device."""
    _in_a_row: dict[str, list[str]] = field(default_factory=dict)
    """Keys of the runs that failed on a device since a run last finished on it, by identity of the
    device."""
    _devices: dict[str, dict[str, str]] = field(default_factory=dict)
    """Devices on which a run failed, by run key: the name of each, by identity."""
    _tries: dict[str, dict[str, int]] = field(default_factory=dict)
    """Number of faults of each kind that ended attempts at a run, by run key."""

    def avoided(self, run: Run) -> frozenset[str]:
        """Return the devices (`device_id`) on which a run failed, and all excluded ones."""
        return frozenset((*self.sick, *self._devices.get(run.key, ())))

    def attempts(self, run: Run) -> int:
        return sum(self._tries.get(run.key, {}).values())

    def finish(self, device: str | None) -> None:
        """Record that a run finished on a device; failed runs on it are counted from 0 again."""
        self._in_a_row.pop(device or "", None)

    def judge(self, run: Run, fault: MachineFault, *, beside: int, devices: int) -> RetryDecision:
        """Record a fault of a run, and decide whether the run is tried again."""
        counts = self._tries.setdefault(run.key, {})
        counts[fault.kind] = counts.get(fault.kind, 0) + 1
        match fault.kind:
            case "node":  # pre-empted or lost: never the run's failure
                return RetryDecision(again=True, message=fault.cause)
            case "kernel":
                return RetryDecision(again=False, message=fault.cause)
            case "memory":
                return self._judge_memory(counts["memory"], fault, beside)
            case "device":
                return self._judge_device(run, fault, devices)
            case "process":
                pass
        times = counts["process"]
        if times <= _PROCESS_DEATHS:
            return RetryDecision(again=True, message=fault.cause)
        return RetryDecision(
            again=False, message=f"its process failed {times} times, the last time: {fault.cause}"
        )

    def _judge_memory(self, times: int, fault: MachineFault, num_others: int) -> RetryDecision:
        if self.on_gpu:
            if times == 1:  # memory of earlier runs may remain in the process
                return RetryDecision(again=True, message=fault.cause)
            return RetryDecision(
                again=False,
                message=f"lacks memory: {fault.cause}; reduce batch_size or the network, or give "
                "each run more of a GPU by --gpus-per-run",
            )
        if num_others and times < _MEMORY_ATTEMPTS:
            note = ""
            if self.limit > (fewer := 1 + num_others // 2):
                self.limit = fewer
                runs = f"{self.limit} runs" if self.limit > 1 else "1 run"
                note = f"memory is short: from now on at most {runs} side by side"
            return RetryDecision(again=True, message=f"lacks memory: {fault.cause}", note=note)
        if times == 1 and "killed" not in fault.cause:  # a new process may have enough
            return RetryDecision(again=True, message=f"lacks memory: {fault.cause}")
        return RetryDecision(
            again=False,
            message=f"lacks memory even if it trains alone: {fault.cause}; {advice()}",
        )

    def _judge_device(self, run: Run, fault: MachineFault, devices: int) -> RetryDecision:
        assert fault.device is not None, "the fault of a device names it"
        seen = self._devices.setdefault(run.key, {})
        is_known = fault.device in seen
        seen[fault.device] = fault.name
        if len(seen) >= _DEVICES or (is_known and devices <= 1):
            for failed in self._in_a_row.values():  # the devices are not to blame
                while run.key in failed:
                    failed.remove(run.key)
            places = "two different devices" if len(seen) >= _DEVICES else "the only device, twice"
            names = " and ".join(dict.fromkeys(seen.values()))
            return RetryDecision(
                again=False, message=f"failed on {places} ({names}), the last time: {fault.cause}"
            )
        failed = self._in_a_row.setdefault(fault.device, [])
        if run.key not in failed:
            failed.append(run.key)
        note = ""
        if len(failed) >= _RUNS_IN_A_ROW and fault.device not in self.sick:
            self.sick[fault.device] = fault.name
            note = (
                f"{fault.name}: {len(failed)} different runs in a row failed on this device, so it "
                f"gets no more runs; the last error: {fault.cause}"
            )
        message = f"{fault.name}: {fault.cause}"
        if devices > 1 and len(self.avoided(run)) >= devices:
            return RetryDecision(
                again=False,
                message=f"failed, and no other device is left to try; {message}",
                note=note,
            )
        return RetryDecision(again=True, message=message, note=note)


def oom_kills() -> int:
    """Return how many processes in this process's cgroup Linux has killed for lack of memory."""
    total = 0
    for version, places in control_groups("memory"):
        file = "memory.oom_control" if version == 1 else "memory.events"
        for place in (places[0], places[-1]):
            if match := re.search(r"^oom_kill (\d+)$", text_of(place / file), re.MULTILINE):
                total += int(match[1])
                break
    return total
