# The App in one image; docs/operating.md says how it is run.
#   docker build -t regreen .
# Where no index answers, `make wheels` beforehand, and a base of your own that has Python (with venv), pip and git:
#   docker build -t regreen --network none --build-arg BASE=my-python .
ARG BASE=python:3.12.12-slim-bookworm

FROM ${BASE} AS build
# EXTRAS=[types,traces] for OpenTelemetry; without types the image is 290 MB smaller, and finds no broken callers.
ARG EXTRAS=[types]
WORKDIR /src
COPY . .
# Every wheel is the locked one: `make wheels` and this download both check the hashes.
RUN test -d wheels || python3 -m pip download --no-cache-dir --no-deps --require-hashes --only-binary=:all: --dest wheels -r requirements.lock
RUN python3 -m venv /build \
 && /build/bin/pip install --no-cache-dir --no-index --find-links wheels hatchling \
 && /build/bin/pip wheel --no-cache-dir --no-index --no-deps --no-build-isolation --wheel-dir wheels . ./playground \
 && python3 -m venv /opt/regreen \
 && /opt/regreen/bin/pip install --no-cache-dir --no-index --find-links wheels "regreen${EXTRAS}" "regreen[app]" regreen-playground \
 && /opt/regreen/bin/pip uninstall --yes --quiet pip
# Needs the network and the extra `types`, whose Node runs it; without it `review` says what it could not check.
RUN sh packaging/script-tools/install.sh /opt/regreen/bin || echo "built without oxlint"

FROM ${BASE}
RUN command -v git >/dev/null || { apt-get update && apt-get install -y --no-install-recommends git && rm -rf /var/lib/apt/lists/*; }
COPY --from=build /opt/regreen /opt/regreen
RUN useradd --uid 10001 --home-dir /var/lib/regreen --create-home regreen
USER regreen
ENV PATH=/opt/regreen/bin:$PATH REGREEN_HOME=/var/lib/regreen PYTHONDONTWRITEBYTECODE=1
VOLUME /var/lib/regreen
EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=6s --start-period=20s CMD ["python3", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/healthz', timeout=5)"]
ENTRYPOINT ["regreen"]
CMD ["serve", "--host", "0.0.0.0", "--port", "8000"]
