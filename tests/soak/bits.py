"""Bits: environment variables that change results must also change the recorded environment.

Each variable that oneDNN, MKL, OpenMP, ATen and glibc document is set in its own process, which
trains an MLP and a narrow ResNet like a worker. If the results differ from those without the
variable, the environment recorded with the stage must differ too, and a run that is resumed in the
other environment must report it.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

from mixup_core.numeric_settings import InstructionsError, differences, require_instructions
from tests.soak.findings import publish

VARIABLES = {
    "ONEDNN_DEFAULT_FPMATH_MODE": ("BF16", "F16", "TF32", "ANY"),
    "DNNL_DEFAULT_FPMATH_MODE": ("BF16", "ANY"),
    "ONEDNN_MAX_CPU_ISA": ("SSE41", "AVX", "AVX2", "AVX512_CORE"),
    "DNNL_MAX_CPU_ISA": ("AVX2",),
    "ONEDNN_CPU_ISA_HINTS": ("PREFER_YMM",),
    "ONEDNN_PRIMITIVE_CACHE_CAPACITY": ("0",),
    "ONEDNN_VERBOSE": ("0",),
    "MKL_CBWR": ("COMPATIBLE", "SSE4_2", "AVX", "AVX2", "AVX512", "AVX2,STRICT"),
    "MKL_ENABLE_INSTRUCTIONS": ("SSE4_2", "AVX", "AVX2", "AVX512"),
    "MKL_DEBUG_CPU_TYPE": ("5",),
    "MKL_DYNAMIC": ("FALSE",),
    "MKL_NUM_THREADS": ("2",),
    "MKL_THREADING_LAYER": ("SEQUENTIAL", "GNU"),
    "OMP_NUM_THREADS": ("2",),
    "OMP_DYNAMIC": ("TRUE",),
    "OMP_SCHEDULE": ("dynamic,1",),
    "OMP_THREAD_LIMIT": ("1",),
    "OMP_PROC_BIND": ("TRUE",),
    "ATEN_CPU_CAPABILITY": ("default", "avx2", "avx512"),
    "GLIBC_TUNABLES": ("glibc.cpu.hwcaps=-AVX2,-FMA", "glibc.cpu.hwcaps=-AVX512F,-AVX2,-FMA,-FMA4"),
}


def train() -> None:
    """Train both networks like a worker, and print what is stored."""
    from mixup_core.numeric_settings import fix_precision

    fix_precision(os.environ)
    import torch

    from mixup_core.config.building import with_values
    from mixup_core.images.training import start
    from mixup_core.keys import stage_keys
    from mixup_core.store.checkpoints import Store
    from sweeps.reading.study_file import load_study
    from sweeps.running.assignment import Assignment
    from sweeps.running.storing import Storing

    torch.set_num_threads(1)
    config = next(iter(load_study("digits").arms.values()))
    shown = {}
    for model in ({"model": "mlp"}, {"model": "narrow-resnet"}):
        small = with_values(replace(config, epochs=2), {"data.num_train": 200, **model})
        with tempfile.TemporaryDirectory() as folder:
            assignment = Assignment(
                config=small, keep=frozenset(), keep_final_state=True, store=folder, teacher=None,
                data_root=os.environ.get("MIXSWEEP_DATA"), on_gpu=False,
            )  # fmt: skip
            storing = Storing(assignment, "cpu")
            process = storing.resume(lambda small=small: start(small, None, "cpu"))
            for _ in iter(process):
                storing.add(process, 1.0)
            stage = Store(folder).read(stage_keys(small)[-1])
            assert stage is not None
            assert stage.state is not None
            history = json.dumps([record.to_plain() for record in stage.records])
            digest = hashlib.sha256((history + stage.state.sha256).encode()).hexdigest()
            shown[model["model"]] = [digest, dict(stage.environment)]
    sys.stdout.write(json.dumps(shown) + "\n")


def trained(**variables: str) -> dict[str, tuple[str, dict[str, str]]]:
    """Return, by model, the hash of the stored content and the recorded environment."""
    environment = {k: v for k, v in os.environ.items() if k not in VARIABLES}
    done = subprocess.run(
        [sys.executable, "-m", "tests.soak.bits", "--train"],
        env={**environment, "OMP_NUM_THREADS": "1", **variables},
        capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2],
    )  # fmt: skip
    found: dict[str, tuple[str, dict[str, str]]] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    """Try every value and publish; exit with 1 if the record hides a change."""
    started = time.monotonic()
    plain, lines, hidden, outcomes = trained(), list[str](), list[str](), Counter[str]()
    if {k: v[0] for k, v in trained().items()} != {k: v[0] for k, v in plain.items()}:
        hidden.append("two runs in one environment differ")
    for name, values in VARIABLES.items():
        for value in values:
            try:
                require_instructions({name: value})
            except InstructionsError as error:
                lines.append(f"{name}={value}: refused: {error}")
                outcomes["refused, as the processor lacks the instructions"] += 1
                continue
            for model, (digest, environment) in trained(**{name: value}).items():
                recorded = differences(plain[model][1], environment)
                bits = "the same bits" if digest == plain[model][0] else "other bits"
                outcomes[f"{bits}, {'recorded' if recorded else 'recorded nowhere'}"] += 1
                lines.append(
                    f"{name}={value} {model}: {bits}, recorded {', '.join(recorded) or 'nowhere'}"
                )
                sys.stdout.write(lines[-1] + "\n")
                if digest != plain[model][0] and not recorded:
                    hidden.append(lines[-1])
    figures = {
        "pairs": len(lines),
        "by_outcome": dict(sorted(outcomes.items())),
        "other_bits_at": [line.partition(":")[0] for line in lines if "other bits" in line],
        "hidden": hidden,
        "seen": lines,
        "minutes": (time.monotonic() - started) / 60,
    }
    title = "Every documented variable of oneDNN, MKL, OpenMP, ATen and glibc, two networks"
    publish("bits", title, figures)
    sys.exit(bool(hidden))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--train", action="store_true", help="train in this process and print")
    train() if parser.parse_args().train else main()
