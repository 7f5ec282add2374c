# The image of the operator and of its admission server. `make image` builds it, with docker or with buildah. No stage
# needs a network: every package comes from build/wheelhouse, which `make image` fills on the host.
ARG PYTHON_IMAGE=python:3.11-slim-bookworm

# 1. The packages, in an environment without pip; byte-compiled here, because the root of the container is read-only.
FROM ${PYTHON_IMAGE} AS packages
COPY build/wheelhouse /wheelhouse
RUN python -m venv --without-pip /opt/vcjob \
 && python -m pip --python /opt/vcjob/bin/python install --disable-pip-version-check --no-cache-dir \
      --no-index --find-links /wheelhouse vcjob \
 && /opt/vcjob/bin/vcjob --version

# 2. The base without what installs, builds or teaches, and with a user of our own.
FROM ${PYTHON_IMAGE} AS base
RUN rm -rf /usr/local/lib/python3*/site-packages/* /usr/lib/python3/dist-packages/* /usr/share/python-wheels \
      /usr/local/bin/pip* /usr/local/bin/idle* /usr/local/bin/2to3* /usr/bin/pip* \
 && for library in /usr/local/lib/python3.* /usr/lib/python3.*; do \
      for part in ensurepip idlelib lib2to3 pydoc_data test tkinter turtledemo; do rm -rf "$library/$part"; done; \
    done \
 && rm -rf /usr/share/doc/* /usr/share/man/* /var/cache/apt/* /var/lib/apt/lists/* /root/.cache \
 && echo 'vcjob:x:65532:65532:vcjob:/nonexistent:/usr/sbin/nologin' >> /etc/passwd \
 && echo 'vcjob:x:65532:' >> /etc/group

# 3. One layer of what is left: a file that was removed above is in no layer of the image.
FROM scratch
COPY --from=base / /
COPY --from=packages /opt/vcjob /opt/vcjob
ARG VERSION=0.0.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="vcjob" \
      org.opencontainers.image.description="Operator for batch.volcano.sh Jobs" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
ENV PATH=/opt/vcjob/bin:/usr/local/bin:/usr/bin:/bin \
    LANG=C.UTF-8 \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
USER 65532:65532
WORKDIR /
EXPOSE 8080 8081
ENTRYPOINT ["vcjob"]
CMD ["operator"]
