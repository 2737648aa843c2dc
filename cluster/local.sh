#!/bin/sh
# Starts a Ray head on this machine. It requires a token and listens on the loopback address only;
# Ctrl-C ends it. PORT is the port of the dashboard, to which jobs are sent, by default with
# `mixsweep submit --address http://127.0.0.1:8265`.
set -eu
umask 077

port=${PORT:-8265}
token=${RAY_AUTH_TOKEN_PATH:-$HOME/.config/mixsweep/ray_token}
venv=$(dirname "$0")/../.venv/bin/python
[ -x "$venv" ] || venv=python3
python=${MIXSWEEP_PYTHON:-$venv}

mkdir -p "$(dirname "$token")"
[ -s "$token" ] || "$python" -c 'import secrets; print(secrets.token_hex(32), end="")' >"$token"

export RAY_AUTH_MODE=token RAY_AUTH_TOKEN_PATH="$token"
export RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER=0 RAY_USAGE_STATS_ENABLED=0
echo "token     $token" >&2
echo "ends by   Ctrl-C here, or kill $$" >&2
exec "$python" -m ray.scripts.scripts start --head --block --disable-usage-stats \
    --node-ip-address=127.0.0.1 --dashboard-host=127.0.0.1 --dashboard-port="$port" "$@"
