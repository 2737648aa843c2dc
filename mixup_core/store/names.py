"""File names in a store, built from stage keys and run keys."""

import re

_SHARDED = r"(?P<shard>[0-9a-f]{2})/(?P<key>(?P=shard)[0-9a-f]{2,62})"
MANIFEST_NAME = re.compile(rf"stages/{_SHARDED}\.json")
STATE_NAME = re.compile(rf"states/{_SHARDED}-[0-9a-f]{{64}}\.bin")
PREDICTION_NAME = re.compile(rf"predictions/{_SHARDED}\.bin")
FAILURE_NAME = re.compile(r"failures/[0-9a-f]{4,64}\.json")
_NOTE_NAME = re.compile(
    r"studies/[a-z0-9-]{1,100}/([0-9a-f]+|statements)\.json"
    r"|data/[0-9a-f]+\.json"
    r"|(leases|stops|uses)/[a-z0-9-]{1,100}(\.progress)?\.json"
)
_NAMES = (MANIFEST_NAME, STATE_NAME, PREDICTION_NAME, FAILURE_NAME, _NOTE_NAME)
_TEMPORARY = re.compile(r"\.[a-z0-9_]{8}\.tmp$")
"""End of a file's name while it is written."""


def checked(key: str) -> str:
    """Return a key unchanged after checking that it is safe in a path."""
    if not re.fullmatch(r"[0-9a-f]{4,64}", key):
        raise ValueError(f"a key must be 4 to 64 lower-case hexadecimal digits, got ({key=}).")
    return key


def manifest_name(key: str) -> str:
    """Return the file name of a stage's manifest (its JSON file), from the stage key."""
    return f"stages/{checked(key)[:2]}/{key}.json"


def key_in(name: str) -> str:
    """Return the stage key with which the name of a manifest, state or temporary file begins."""
    return name.rpartition("/")[2].partition(".")[0].partition("-")[0]


def is_temporary(name: str) -> bool:
    """Return True if a name is that of a file of the store while it is being written.

    Other programs may have temporary files in the same folders, which are not to be removed.
    """
    complete = _TEMPORARY.sub("", name)
    return complete != name and any(pattern.fullmatch(complete) for pattern in _NAMES)


def states_folder(key: str) -> str:
    """Return the name of the folder for the states of a stage, from the stage key."""
    return f"states/{checked(key)[:2]}"


def state_name(key: str, sha256: str) -> str:
    """Return the file name of a state, from the stage key and the sha256 of the file."""
    return f"{states_folder(key)}/{key}-{sha256}.bin"


def failure_name(run_key: str) -> str:
    """Return the file name of a run's failure, from the run key."""
    return f"failures/{checked(run_key)}.json"


def prediction_name(key: str) -> str:
    """Return the file name of a finished run's predictions, from the last stage key of the run."""
    return f"predictions/{checked(key)[:2]}/{key}.bin"
