# One image for KubeRay, `ray up`, Compose and a development container.
#   docker build --tag mixsweep .                                            CPUs
#   docker build --tag mixsweep --build-arg BASE=nvidia/cuda:13.0.1-runtime-ubuntu24.04 .
# The PyTorch package contains CUDA. The base image needs Python 3.11 or newer; on a GPU node, the
# container runtime adds the interface of the driver.
ARG BASE=debian:12-slim
FROM ${BASE}

ENV DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 PYTHONUNBUFFERED=1 OMP_NUM_THREADS=1 \
    PATH=/opt/venv/bin:$PATH MIXSWEEP_HOME=/runs MIXSWEEP_DATA=/runs/data \
    RAY_USAGE_STATS_ENABLED=0 MLFLOW_DISABLE_TELEMETRY=true

# torch.compile, which `python -m tests.bench.gpu.device` measures, needs gcc. KubeRay checks its pods with wget.
RUN apt-get update -qq \
    && apt-get install -y -qq --no-install-recommends ca-certificates gcc git libc6-dev \
        make python3 python3-venv wget \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid 1000 ray \
    && install --directory --owner ray --mode 700 /runs

# Packages are installed before the code is copied, so that a change of code downloads nothing.
COPY requirements.lock /opt/mixsweep/
RUN python3 -m venv /opt/venv \
    && /opt/venv/bin/pip install --no-cache-dir --quiet --require-hashes \
        --requirement /opt/mixsweep/requirements.lock

COPY . /opt/mixsweep
RUN /opt/venv/bin/pip install --no-cache-dir --quiet --no-deps --no-build-isolation /opt/mixsweep

USER ray
WORKDIR /runs
VOLUME /runs
HEALTHCHECK --interval=5m --timeout=60s --start-period=30s CMD ["mixsweep", "plan"]
ENTRYPOINT []
CMD ["mixsweep", "--help"]
