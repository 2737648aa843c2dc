#!/bin/sh
# Runs a command where no signal, mount or packet of it can get out, and everything it started ends
# with it. HOME and TMPDIR are on a small disk of its own; their path is short, since the paths of
# Ray's sockets end at 107 bytes.
set -eu

# Without root, a user namespace gives the right to make the others.
[ "$(id -u)" -eq 0 ] && as_root="" || as_root="--map-root-user"
unshare_all="unshare $as_root --pid --fork --net --mount --mount-proc --kill-child"

if ! $unshare_all true 2>/dev/null; then
    echo "SKIPPED: this machine permits no namespaces, so NO FAULT WAS TESTED: $*" >&2
    exit 0
fi

OUTER_PIDNS=$(readlink /proc/self/ns/pid)
export OUTER_PIDNS
# The shell stays, as process 1, and reaps the orphans of killed drivers.
exec $unshare_all sh -c '
    set -eu
    ip link set lo up
    mount -t tmpfs -o size=2g tmpfs /mnt
    mount -t tmpfs tmpfs /dev/shm
    # The data sets of the machine stay at hand.
    export MIXSWEEP_DATA="${MIXSWEEP_DATA:-${XDG_CACHE_HOME:-$HOME/.cache}/mixsweep/datasets}"
    export HOME=/mnt TMPDIR=/mnt RAY_TMPDIR=/mnt RAY_USAGE_STATS_ENABLED=0
    # Workers are waited for here; Ray would give them what CPU everything else leaves.
    export RAY_worker_niceness=0
    # Clusters of tests are as ours are: a token, and every port on the loopback.
    export RAY_AUTH_MODE=token RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER=0
    RAY_AUTH_TOKEN=$(od -An -N16 -tx1 /dev/urandom | tr -d " \n")
    export RAY_AUTH_TOKEN
    "$@" || exit $?
' sh "$@"
