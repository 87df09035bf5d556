# Both the HTTP side and the workers; which one a container is, its command says. See docker-compose.yml.
FROM python:3.12-slim AS build
WORKDIR /build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
RUN python -m venv /opt/chat-chat
COPY requirements.txt requirements-extras.txt ./
RUN /opt/chat-chat/bin/pip install --quiet --require-hashes -r requirements.txt -r requirements-extras.txt
COPY pyproject.toml README.md LICENSE ./
COPY config config
COPY processors processors
COPY memory memory
COPY gateway gateway
COPY chat_chat_client chat_chat_client
RUN /opt/chat-chat/bin/pip install --quiet --no-deps --no-build-isolation . \
    && /opt/chat-chat/bin/pip uninstall --quiet --yes setuptools pip

FROM python:3.12-slim
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --uid 10001 --home-dir /srv --shell /usr/sbin/nologin chatchat \
    && install -d -o chatchat -g chatchat /srv/data /srv/config
COPY --from=build /opt/chat-chat /opt/chat-chat
ENV PATH=/opt/chat-chat/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 DATA_DIR=/srv/data CONFIG_DIR=/srv/config
USER chatchat
WORKDIR /srv
VOLUME /srv/data
EXPOSE 8080
# Of `run` and `serve`; the other commands have no HTTP side (docker-compose.yml turns it off for them).
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8080/healthz', timeout=4)"]
CMD ["chat-chat", "run", "--host", "0.0.0.0"]
