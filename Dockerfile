# Two images: `service` (the default) is Python alone; `history` adds Java and Spark.
#   docker build -t caughtup .
#   docker build -t caughtup-history --target history .

# The tag says what it is, the digest which one: `make pin` takes the newest.
FROM python:3.11-slim-bookworm@sha256:a36c24f9cbdf4fd0f52d67f0823eeac19c2028c637cecc392d97f980d4fec56b AS interpreter

# Whatever is fetched is named by a lock file with its hash. Wheels are made here, with tools that
# are locked, too, and not by pip's own choice of them; what is installed comes from these alone.
FROM interpreter AS build
RUN python -m venv /opt/build && python -m venv /opt/caughtup
WORKDIR /src
COPY requirements-build.lock requirements-service.lock requirements-history.lock ./
RUN /opt/build/bin/pip install --no-cache-dir --require-hashes -r requirements-build.lock
RUN /opt/build/bin/pip wheel --no-cache-dir --no-build-isolation --require-hashes \
    --wheel-dir /wheels -r requirements-service.lock
COPY pyproject.toml README.md LICENSE ./
COPY caughtup caughtup
COPY agents agents
COPY models models
COPY pipelines pipelines
COPY followers followers
COPY demo demo
COPY bench bench
RUN /opt/build/bin/pip wheel --no-cache-dir --no-build-isolation --no-deps --wheel-dir /wheels . \
 && /opt/caughtup/bin/pip install --no-cache-dir --no-index --no-deps /wheels/*.whl

FROM build AS build_history
RUN /opt/build/bin/pip wheel --no-cache-dir --no-build-isolation --require-hashes \
    --wheel-dir /wheels-history -r requirements-history.lock \
 && /opt/caughtup/bin/pip install --no-cache-dir --no-index --no-deps /wheels-history/*.whl

FROM interpreter AS base
RUN useradd --system --uid 10001 --home-dir /var/lib/caughtup --create-home caughtup
ENV PATH=/opt/caughtup/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
WORKDIR /var/lib/caughtup
ENTRYPOINT ["caughtup"]

FROM base AS history
RUN apt-get update \
 && apt-get install -y --no-install-recommends openjdk-17-jre-headless procps \
 && rm -rf /var/lib/apt/lists/*
COPY --from=build_history /opt/caughtup /opt/caughtup
# Spark's Kafka connector is fetched now, so that the job needs no network but Kafka's.
ENV CAUGHTUP_CACHE=/opt/caughtup/cache
RUN python -c "from caughtup.demo.java.jars import ensure_spark_jars; ensure_spark_jars()" \
 && mkdir -p /var/lib/caughtup/history && chown -R caughtup: /opt/caughtup/cache /var/lib/caughtup
USER 10001
CMD ["pipeline", "history", "--help"]

FROM base AS service
COPY --from=build /opt/caughtup /opt/caughtup
USER 10001
# Inside a container loopback reaches nobody; who may reach it is for the published port to say.
ENV CAUGHTUP_WEB_HOST=0.0.0.0 CAUGHTUP_WEB_PORT=8080
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=3s --start-period=60s --retries=3 \
  CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8080/ready', timeout=2)"]
CMD ["run"]
