"""Names of the files of a store, by the keys of stages and runs."""

import re
from pathlib import Path

_SHARDED = r"(?P<shard>[0-9a-f]{2})/(?P<key>(?P=shard)[0-9a-f]{2,62})"
MANIFEST_NAME = re.compile(rf"stages/{_SHARDED}\.json")
STATE_NAME = re.compile(rf"states/{_SHARDED}-[0-9a-f]{{64}}\.bin")
PREDICTION_NAME = re.compile(rf"predictions/{_SHARDED}\.bin")


def checked(key: str) -> str:
    """Return a key that is safe in a path.

    Raises:
        ValueError: If it is not made of lower-case hexadecimal digits.
    """
    if not re.fullmatch(r"[0-9a-f]{4,64}", key):
        raise ValueError(f"`a key is 4 to 64 hexadecimal digits` must hold, got ({key=}).")
    return key


def manifest_name(key: str) -> str:
    """Return where the manifest of a stage is."""
    return f"stages/{checked(key)[:2]}/{key}.json"


def key_in(name: str) -> str:
    """Return the key that the name of a manifest, a state or what was left of one begins with."""
    return re.split(r"[-.]", Path(name).name)[0]


def states_folder(key: str) -> str:
    """Return the folder of the states of a stage and its neighbours."""
    return f"states/{checked(key)[:2]}"


def state_name(key: str, sha256: str) -> str:
    """Return where a state of a stage is, by the sha256 of the whole file."""
    return f"{states_folder(key)}/{key}-{sha256}.bin"


def failure_name(run_key: str) -> str:
    """Return where the failure of a run is."""
    return f"failures/{checked(run_key)}.json"


def prediction_name(key: str) -> str:
    """Return where the predictions of a finished run are, by the key of its last stage."""
    return f"predictions/{checked(key)[:2]}/{key}.bin"
