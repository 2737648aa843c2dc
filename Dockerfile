# One image for KubeRay, `ray up`, Compose and a development container.
#   docker build --tag mixsweep .                                            CPUs
#   docker build --tag mixsweep --build-arg BASE=nvidia/cuda:13.0.1-runtime-ubuntu24.04 .
# PyTorch brings CUDA with it: a base needs the driver's interface alone, given by the container
# runtime of the GPU node, and Python 3.11 or newer.
ARG BASE=debian:12-slim
FROM ${BASE}

ENV DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 PYTHONUNBUFFERED=1 OMP_NUM_THREADS=1 \
    PATH=/opt/venv/bin:$PATH MIXSWEEP_HOME=/runs MIXSWEEP_DATA=/runs/data \
    RAY_USAGE_STATS_ENABLED=0 MLFLOW_DISABLE_TELEMETRY=true

# gcc assembles batches on CPUs in one pass; KubeRay looks after its pods with wget.
RUN apt-get update -qq \
    && apt-get install -y -qq --no-install-recommends ca-certificates gcc git libc6-dev \
        make python3 python3-venv wget \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid 1000 ray \
    && install --directory --owner ray --mode 700 /runs

# The packages, each with its sha256, before the code: a change of code downloads nothing.
COPY requirements.lock /opt/mixsweep/
RUN python3 -m venv /opt/venv \
    && /opt/venv/bin/pip install --no-cache-dir --quiet --require-hashes \
        --requirement /opt/mixsweep/requirements.lock

COPY . /opt/mixsweep
RUN /opt/venv/bin/pip install --no-cache-dir --quiet --no-deps --no-build-isolation /opt/mixsweep

USER ray
WORKDIR /runs
VOLUME /runs
HEALTHCHECK --interval=5m --timeout=60s --start-period=30s CMD ["mixsweep", "doctor"]
ENTRYPOINT []
CMD ["mixsweep", "--help"]
