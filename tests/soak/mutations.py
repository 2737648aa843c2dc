"""Mutations: thousands of changed study files; each is read, or refused line by line, quickly."""

import argparse
import random
import resource
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from sweeps.reading.study_file import StudyError, load_study
from tests.soak.findings import publish

STUDIES = Path("sweeps") / "studies"
HANGS_AFTER = 30
"""Seconds after which reading a file counts as hanging."""
SLOW_AFTER = 2.0
"""CPU seconds that reading a file may take."""
LARGEST_MB = 500.0
"""Largest peak memory of this process over all files, in MB; this reveals leaks too."""
_PUBLISHED_EVERY = 500
_VALUES = (
    "null", "true", "~", "''", "[]", "{}", "-1", "0", "1e400", "nan", ".inf", "5e-324", "9" * 400,
    "2026-01-01", "12:30:45", "!!python/object:os.system x", "&a [*a]", "{a: {a: {a: 1}}}", "\x00",
    "\ufeff", "\u202e", "../../etc/passwd", "{log_uniform: [0, 1]}", "{int: [3, 1]}",
    "[1, [2, [3]]]",
)  # fmt: skip

Mutation = Callable[[str, random.Random], str]


def _drop_line(text: str, rng: random.Random) -> str:
    lines = text.splitlines(keepends=True)
    del lines[rng.randrange(len(lines))]
    return "".join(lines)


def _repeat_line(text: str, rng: random.Random) -> str:
    lines = text.splitlines(keepends=True)
    lines.insert(rng.randrange(len(lines)), rng.choice(lines))
    return "".join(lines)


def _indent_line(text: str, rng: random.Random) -> str:
    lines = text.splitlines(keepends=True)
    number = rng.randrange(len(lines))
    lines[number] = rng.choice(("  ", "\t", "- ", "? ")) + lines[number]
    return "".join(lines)


def _change_value(text: str, rng: random.Random) -> str:
    lines = text.splitlines(keepends=True)
    number = rng.choice([n for n, line in enumerate(lines) if ":" in line] or [0])
    key = lines[number].partition(":")[0]
    lines[number] = f"{key}: {rng.choice(_VALUES)}\n"
    return "".join(lines)


def _change_character(text: str, rng: random.Random) -> str:
    place = rng.randrange(len(text))
    return (
        text[:place] + chr(rng.choice((rng.randrange(128), rng.randrange(0xD800)))) + text[place:]
    )


def _swap_words(text: str, rng: random.Random) -> str:
    words = text.split(" ")
    one, other = rng.randrange(len(words)), rng.randrange(len(words))
    words[one], words[other] = words[other], words[one]
    return " ".join(words)


def _cut(text: str, rng: random.Random) -> str:
    return text[: rng.randrange(len(text))]


MUTATIONS: Sequence[Mutation] = (
    _drop_line, _repeat_line, _indent_line, _change_value, _change_value, _change_character,
    _swap_words, _cut,
)  # fmt: skip


def mutated(text: str, rng: random.Random) -> str:
    """Return a text with one to four mutations."""
    for mutation in rng.choices(MUTATIONS, k=rng.randint(1, 4)):
        if text.strip():
            text = mutation(text, rng)
    return text


def verdict(file: Path) -> tuple[str, str | None]:
    """Return whether a file was read or refused, and what was wrong; None if nothing."""
    started = time.process_time()
    try:
        with _limited(HANGS_AFTER):
            load_study(str(file), ())
        told = "read"
    except StudyError as error:
        told = "refused"
        if not error.faults or any("\n" in problem for problem in error.faults):
            return told, f"is refused in other than lines: {error.faults[:1]}"
    except TimeoutError:
        return "hung", f"takes more than {HANGS_AFTER} s"
    except Exception as error:  # any other type is a traceback to the user
        return "failed", f"{type(error).__name__}: {error}"[:200]
    seconds = time.process_time() - started
    return told, f"took {seconds:.1f} s" if seconds > SLOW_AFTER else None


def main() -> None:
    """Test the mutants and publish the result; exit with 1 if one is wrong or was not tested."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--minutes", type=float, default=240.0, help="no file is read after them")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    originals = sorted(STUDIES.glob("*.yaml"))
    started, told, wrong, slowest = time.monotonic(), Counter[str](), list[str](), 0.0
    largest = at_start = _peak_mb()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "study.yaml"
        for number in range(1, options.files + 1):
            original = rng.choice(originals)
            file.write_text(mutated(original.read_text(), rng))
            before = time.process_time()
            how, trouble = verdict(file)
            slowest = max(slowest, time.process_time() - before)
            told[how] += 1
            former, largest = largest, _peak_mb()
            if former <= LARGEST_MB < largest and trouble is None:
                trouble = f"took the process from {former:.0f} to {largest:.0f} MB"
            if trouble is not None:
                wrong.append(f"mutant {number} of {original.name}: {trouble}")
                print(wrong[-1], flush=True)  # noqa: T201
            is_over = time.monotonic() - started > 60 * options.minutes
            if number % _PUBLISHED_EVERY == 0 or number == options.files or is_over:
                figures = {
                    "files": number,
                    "told": dict(told),
                    "slowest_seconds": slowest,
                    "memory_mb_before_the_first": at_start,
                    "largest_memory_mb": largest,
                    "violations": wrong,
                    "minutes": (time.monotonic() - started) / 60,
                    "seed": options.seed,
                }
                publish("mutations", f"{number} mutated study files", figures)
            if is_over:
                break
    if number < options.files:
        wrong.append(f"{number} of {options.files} files were read")
        print(wrong[-1])  # noqa: T201
    raise SystemExit(1 if wrong else 0)


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


@contextmanager
def _limited(seconds: int) -> Iterator[None]:
    def give_up(number: int, frame: FrameType | None) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


if __name__ == "__main__":
    main()
