# Two images of one wheel: `service` (the default) is Python alone; `history` adds Java and Spark.
#   make wheel
#   docker build -t caughtup .
#   docker build -t caughtup-history --target history .
# Nothing but the wheel is sent to the builder. Whoever has only that, finds this file in it:
#   caughtup files --to . Dockerfile && docker build -t caughtup --build-arg WHEELS=. .

# The tag says what it is, the digest which one: `make pin` writes the newest here. Another image
# with Python and pip in it: --build-arg PYTHON=NAME@DIGEST
ARG PYTHON=python:3.11-slim-bookworm@sha256:a36c24f9cbdf4fd0f52d67f0823eeac19c2028c637cecc392d97f980d4fec56b
# The directory of the wheel.
ARG WHEELS=dist

# Whatever is fetched is named by a lock file with its hash; the locks are in the wheel. Packages'
# wheels are made here, with tools that are locked, too, and not by pip's own choice of them; what
# is installed comes from these alone.
FROM ${PYTHON} AS build
ARG WHEELS
RUN python -m venv /opt/build && python -m venv --without-pip /opt/caughtup
COPY ${WHEELS}/caughtup-*-py3-none-any.whl /wheels/
RUN python -m zipfile -e /wheels/caughtup-*.whl /unpacked && mv /unpacked/caughtup/share /locks
RUN /opt/build/bin/pip install --no-cache-dir --require-hashes -r /locks/requirements-build.lock
RUN /opt/build/bin/pip wheel --no-cache-dir --no-build-isolation --require-hashes \
    --wheel-dir /wheels -r /locks/requirements-service.lock
RUN /opt/build/bin/pip --python /opt/caughtup/bin/python install --no-cache-dir --no-index \
    --no-deps /wheels/*.whl
# What is in it, for scanners, as CycloneDX; Debian's packages are in dpkg's own list.
RUN /opt/build/bin/cyclonedx-py environment --output-reproducible \
    --output-file /opt/caughtup/sbom.cdx.json /opt/caughtup/bin/python

FROM build AS build_history
RUN /opt/build/bin/pip wheel --no-cache-dir --no-build-isolation --require-hashes \
    --wheel-dir /wheels-history -r /locks/requirements-history.lock
RUN /opt/build/bin/pip --python /opt/caughtup/bin/python install --no-cache-dir --no-index \
    --no-deps /wheels-history/*.whl
RUN /opt/build/bin/cyclonedx-py environment --output-reproducible \
    --output-file /opt/caughtup/sbom.cdx.json /opt/caughtup/bin/python

FROM ${PYTHON} AS base
# Without a home of its own: both write into /tmp alone, and no file of the image is the user's, but
# where a volume of the history is mounted: a new one gets its owner from there.
RUN useradd --uid 10001 --home-dir /var/lib/caughtup --no-create-home --no-log-init \
    --shell /usr/sbin/nologin caughtup
ENV PATH=/opt/caughtup/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
WORKDIR /var/lib/caughtup
ENTRYPOINT ["caughtup"]

FROM base AS history
RUN apt-get update \
 && apt-get install -y --no-install-recommends openjdk-17-jre-headless procps \
 && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /tmp/hsperfdata_root
COPY --from=build_history /opt/caughtup /opt/caughtup
# Spark's Kafka connector is fetched now, so that the job needs no network but Kafka's.
ENV CAUGHTUP_CACHE=/opt/caughtup/cache
RUN python -c "from caughtup.pipelines.java.jars import ensure_spark_jars; ensure_spark_jars()" \
 && rm -rf /tmp/hsperfdata_root \
 && mkdir -p /var/lib/caughtup/history && chown caughtup: /var/lib/caughtup/history
USER 10001
CMD ["pipeline", "history", "--help"]

FROM base AS service
COPY --from=build /opt/caughtup /opt/caughtup
USER 10001
# Inside a container no client reaches loopback; the published port decides which clients reach it.
ENV CAUGHTUP_WEB_HOST=0.0.0.0 CAUGHTUP_WEB_PORT=8080
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=3s --start-period=60s --retries=3 \
  CMD ["python", "-c", "import os, urllib.request as u; u.urlopen(f\"http://127.0.0.1:{os.environ['CAUGHTUP_WEB_PORT']}/ready\", timeout=2)"]
CMD ["run"]
