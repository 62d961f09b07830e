# The image of every Headway process: coordinators, agents and the command line.
FROM python:3.12-slim AS build
WORKDIR /source
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY sagas sagas
COPY agents agents
COPY coordinator coordinator
COPY cli cli
COPY drills drills
COPY demo demo
COPY conform conform
RUN python -m venv /opt/headway \
    && /opt/headway/bin/pip install --no-cache-dir -c constraints.txt '.[all]'

FROM python:3.12-slim
RUN useradd --system --uid 10001 --home-dir /home/headway --create-home headway \
    && install --directory --owner headway /demo
COPY --from=build /opt/headway /opt/headway
ENV PATH=/opt/headway/bin:$PATH PYTHONSAFEPATH=1 PYTHONUNBUFFERED=1
USER headway
WORKDIR /home/headway
ENTRYPOINT ["headway"]
CMD ["--help"]
