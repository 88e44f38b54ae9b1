# Two images: `service` (the default) is Python alone; `history` adds Java and Spark.
#   docker build -t caughtup .
#   docker build -t caughtup-history --target history .

FROM python:3.11-slim-bookworm AS build
RUN python -m venv /opt/caughtup
WORKDIR /src
COPY pyproject.toml README.md LICENSE requirements.lock ./
COPY caughtup caughtup
COPY agents agents
COPY models models
COPY pipelines pipelines
COPY followers followers
COPY demo demo
# The versions of requirements.lock as constraints: the lock itself also holds what only tests need.
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels . \
 && sed -E '/^ +--hash/d; s/ \\$//' requirements.lock > /wheels/constraints.txt \
 && /opt/caughtup/bin/pip install --no-cache-dir -c /wheels/constraints.txt /wheels/*.whl

FROM python:3.11-slim-bookworm AS base
RUN useradd --system --uid 10001 --home-dir /var/lib/caughtup --create-home caughtup
ENV PATH=/opt/caughtup/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
WORKDIR /var/lib/caughtup
ENTRYPOINT ["caughtup"]

FROM base AS history
RUN apt-get update \
 && apt-get install -y --no-install-recommends openjdk-17-jre-headless procps \
 && rm -rf /var/lib/apt/lists/*
COPY --from=build /opt/caughtup /opt/caughtup
RUN --mount=type=bind,from=build,source=/wheels,target=/wheels \
    pip install --no-cache-dir -c /wheels/constraints.txt "$(echo /wheels/*.whl)[spark]"
# Spark's Kafka connector is fetched now, so that the job needs no network but Kafka's.
ENV CAUGHTUP_CACHE=/opt/caughtup/cache
RUN python -c "from caughtup.demo.jars import ensure_spark_jars; ensure_spark_jars()" \
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
