"""A client made of python3-libtorrent, run as a program on a host of its own.

    libtorrent_peer.py TORRENT DIRECTORY PORT BYTES_PER_SECOND STATUS [FLAG…]

TORRENT is a file or, with --metadata, a magnet link. --seed: all is there, unchecked. --exchange: peers are
exchanged. --peer=HOST:PORT names a peer, and may come again. --upload=BYTES_PER_SECOND limits what it gives.

It writes what it sees to the file STATUS, as JSON, several times a second, and prints
libtorrent's alerts. On SIGTERM it says goodbye to the tracker and ends.
"""

import json
import os
import signal
import sys
import time

import libtorrent


def main(torrent, directory, port, rate, status_file, *flags):
    stopping = False

    def stop(*_):
        nonlocal stopping
        stopping = True

    signal.signal(signal.SIGTERM, stop)
    category = libtorrent.alert.category_t
    told = (category.error_notification, category.status_notification, category.peer_notification,
            category.connect_notification, category.tracker_notification)
    # No plugins: so neither peer exchange nor metadata.
    plugins = 1 if {"--exchange", "--metadata"} & set(flags) else 0
    session = libtorrent.session({
        "listen_interfaces": f"0.0.0.0:{port},[::]:{port}",
        "enable_dht": False,
        "enable_lsd": False,
        "enable_upnp": False,
        "enable_natpmp": False,
        "enable_incoming_utp": False,
        "enable_outgoing_utp": False,
        "alert_mask": sum(told),
    }, plugins)
    if torrent.startswith("magnet:"):
        parameters = libtorrent.parse_magnet_uri(torrent)
    else:
        parameters = libtorrent.add_torrent_params()
        parameters.ti = libtorrent.torrent_info(torrent)
    parameters.save_path = directory
    parameters.download_limit = int(rate)  # The session's own limit spares local networks.
    # Managed by hand, or the session would resume what `pause` stopped.
    parameters.flags &= ~(libtorrent.torrent_flags.auto_managed | libtorrent.torrent_flags.paused)
    if "--seed" in flags:
        parameters.flags |= libtorrent.torrent_flags.seed_mode
    if "--exchange" not in flags:
        parameters.flags |= libtorrent.torrent_flags.disable_pex
    for flag in flags:
        name, _, value = flag.partition("=")
        if name == "--upload":
            parameters.upload_limit = int(value)
    handle = session.add_torrent(parameters)
    for flag in flags:
        name, _, value = flag.partition("=")
        if name == "--peer":
            host, _, number = value.rpartition(":")
            handle.connect_peer((host.strip("[]"), int(number)))

    origins = {
        "tracker": libtorrent.peer_info.tracker,
        "DHT": libtorrent.peer_info.dht,
        "PEX": libtorrent.peer_info.pex,
        "LSD": libtorrent.peer_info.lsd,
        "resume data": libtorrent.peer_info.resume_data,
    }
    sources = set()

    def look():
        for alert in session.pop_alerts():
            print(f"{time.time():.3f} {type(alert).__name__}: {alert}", flush=True)
        status = handle.status()
        for peer in handle.get_peer_info():
            sources.update(name for name, bit in origins.items() if peer.source & bit)
        report = {"progress": 1 if status.is_seeding else min(status.progress, 0.99),
                  "sources": sorted(sources)}
        with open(status_file + ".new", "w") as file:
            json.dump(report, file)
        os.replace(status_file + ".new", status_file)

    while not stopping:
        look()
        time.sleep(0.1)
    handle.pause()
    deadline = time.monotonic() + 3
    while time.monotonic() < deadline:  # The announce of `stopped`, again if it was lost.
        look()
        time.sleep(0.1)


if __name__ == "__main__":
    main(*sys.argv[1:])
