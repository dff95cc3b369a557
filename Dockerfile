# A tracker in a small image, without root: docker build -t swarmkeeper .
#
# compose.yaml runs three of them with a broker.

FROM swift:6.3-bookworm AS build
RUN apt-get update \
    && apt-get install --yes --no-install-recommends libsqlite3-dev \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /source
# The packages first: they change seldom, and come from the cache.
COPY Package.swift ./
RUN --mount=type=cache,target=/root/.cache swift package resolve
# The simulator that the console's page runs; a toolchain without a library for wasm32 leaves it out, and says so.
COPY Wasm Wasm
COPY Sources Sources
RUN mkdir --parents .build-wasm /image/usr/local/share/swarmkeeper \
    && { Wasm/build || [ $? -eq 3 ]; } \
    && find .build-wasm -maxdepth 1 -name 'simulator.wasm*' \
        -exec install --mode=0644 --target-directory=/image/usr/local/share/swarmkeeper {} +
# The package names them; the product does not need them.
COPY Tests Tests
RUN --mount=type=cache,target=/root/.cache \
    swift build --configuration release --product tracker --static-swift-stdlib \
    && install --strip -D .build/release/tracker /image/usr/local/bin/tracker

FROM debian:bookworm-slim
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates libsqlite3-0 libstdc++6 tzdata \
    && rm -rf /var/lib/apt/lists/* \
    # Numbers that key files and volumes can be given to; the same in every version of this image.
    && groupadd --gid 6969 swarmkeeper \
    && useradd --uid 6969 --gid 6969 --no-create-home --home-dir /var/lib/swarmkeeper --shell /usr/sbin/nologin \
        swarmkeeper \
    && install --directory --owner=6969 --group=6969 --mode=0700 /var/lib/swarmkeeper
COPY --from=build /image/ /
USER 6969:6969
# A process that has crashed ends at once; Swift's backtracer would hold it for 8 to 24 s.
ENV SWARMKEEPER_STORAGE_DIRECTORY=/var/lib/swarmkeeper \
    SWARMKEEPER_LISTEN_HTTP=0.0.0.0:6969 \
    SWIFT_BACKTRACE=enable=no
VOLUME /var/lib/swarmkeeper
EXPOSE 6969/udp 6969/tcp
# Whether its logic answers; a tracker that waits for its cluster is healthy, though it answers no client.
HEALTHCHECK --interval=10s --timeout=6s --start-period=60s --retries=3 CMD ["tracker", "status"]
# SIGTERM hands over and stops.
STOPSIGNAL SIGTERM
ENTRYPOINT ["tracker"]
CMD ["serve"]
