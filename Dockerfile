# The App in one image. Boxes need an engine: give it the host's Docker socket only where that host is the App's alone.
FROM python:3.12-slim
RUN apt-get update && apt-get install -y --no-install-recommends git && rm -rf /var/lib/apt/lists/*
WORKDIR /app
COPY requirements.lock pyproject.toml README.md LICENSE ./
RUN pip install --no-cache-dir --require-hashes -r requirements.lock
COPY regreen regreen
RUN pip install --no-cache-dir --no-deps --no-build-isolation .
RUN useradd --uid 10001 --create-home regreen
USER regreen
ENV REGREEN_HOME=/home/regreen/.regreen
EXPOSE 8000
HEALTHCHECK CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/healthz', timeout=5)"]
CMD ["regreen", "serve", "--host", "0.0.0.0", "--port", "8000"]
