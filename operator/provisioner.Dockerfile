# The provisioner's image: Node.js, OpenSSH's client, RKE, and the operator's one file.
#
#   How to build it, with the release of RKE and its checksum: docs/operating.md, "The provisioner".
#
# From the built bundle, as the operator's image. It needs a shell: what runs here runs scripts. The build context is dist/.

FROM node:22-bookworm-slim

ARG VERSION=dev
ARG REVISION=unknown
# A release of rancher/rke, and the checksum of its program; a build without them fails. v1.8.14 is the last release.
ARG RKE_VERSION
ARG RKE_SHA256
ARG TARGETARCH=amd64
LABEL org.opencontainers.image.title="Kindred provisioner" \
      org.opencontainers.image.description="Makes Kubernetes clusters with RKE, RKE2 and K3s on machines over SSH." \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.base.name="docker.io/library/node:22-bookworm-slim"

RUN : "${RKE_VERSION:?give --build-arg RKE_VERSION, such as v1.8.14}" "${RKE_SHA256:?give --build-arg RKE_SHA256, the checksum of that release}" \
 && apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates openssh-client curl \
 && curl -fsSL --proto =https --proto-redir =https -o /usr/local/bin/rke "https://github.com/rancher/rke/releases/download/${RKE_VERSION}/rke_linux-${TARGETARCH}" \
 && echo "${RKE_SHA256}  /usr/local/bin/rke" | sha256sum --check --strict \
 && chmod 0555 /usr/local/bin/rke \
 && apt-get purge -y --auto-remove curl \
 && rm -rf /var/lib/apt/lists/*

COPY --chmod=0444 operator.cjs /operator.cjs

# OpenSSH's client asks the system for its user's name.
RUN useradd --uid 65532 --user-group --no-create-home --shell /usr/sbin/nologin kindred
USER 65532:65532

# /healthz, /readyz and /metrics.
EXPOSE 8080

ENTRYPOINT ["/usr/local/bin/node", "/operator.cjs"]
