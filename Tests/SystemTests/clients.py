"""The BitTorrent clients that people use, one class each, set to trust the tracker alone.

Each runs on a host of its own with one torrent. It is started with everything it needs on
its command line or in its configuration, and is only watched from then on, through the
remote control that it offers. Distributed hash table (DHT), peer exchange (PEX), local
discovery (LSD), port mapping and µTP are off; a test may let it exchange peers.
"""

import abc
import contextlib
import http.client
import json
import pathlib
import signal
import socket
import urllib.parse
import xmlrpc.client

PORT = 6881
"""Where every client takes peers: each has a host of its own."""

RATE = 2 << 20
"""Bytes per second a client may download unless told otherwise: a transfer lasts long enough to be watched."""

UNLIMITED = 0
"""As a rate: as fast as it can."""


class Unreachable(Exception):
    """The client's remote control does not answer, yet."""


class Client(abc.ABC):
    """A client with one torrent; a seeder if it is given the payload.

    A downloader knows the torrent by its file or, if it is `by_magnet`, by a link alone.

    `progress` is the part of the payload that it has, 0…1, and None before it first told.
    `sources` collects where it says that it learnt of its peers: "tracker", "DHT", …; peers
    that came by themselves do not count.
    """

    program: str
    package: str
    tells_sources = True
    makes_empty_files = True
    stop_signal = signal.SIGTERM

    def __init__(self, host, directory, torrent, announce_urls, seeds, *, rate=RATE, by_magnet=False, exchanges=False):
        self.host = host
        self.directory = pathlib.Path(directory)
        self.torrent = torrent
        self.seeds = seeds
        self.sources = set()
        self.progress = None
        self.downloads = self.directory / "downloads"
        self.downloads.mkdir(parents=True)
        self.file = self.downloads / torrent.name
        self.rate, self.by_magnet, self.exchanges = rate, by_magnet, exchanges
        if by_magnet:
            self.source = torrent.magnet(*announce_urls)
        else:
            self.source = self.directory / "test.torrent"
            self.source.write_bytes(torrent.file(*announce_urls))
        if seeds:
            torrent.write(self.downloads)
        self.process = host.start(self.command(), self.directory)

    def __str__(self):
        return f"{type(self).__name__} on {self.host.name}"

    @abc.abstractmethod
    def command(self):
        """The command that runs it in the foreground; writes the configuration it needs."""

    @abc.abstractmethod
    def look(self):
        """Returns the part of the payload it has, 0…1, and a set of sources of peers."""

    def is_complete(self):
        """Looks after it: whether it has the whole payload, checked by the client itself."""
        assert self.process.status is None, f"{self} ended with status {self.process.status}"
        with contextlib.suppress(Unreachable):
            self.progress, sources = self.look()
            self.sources |= sources
        return self.progress == 1

    def sha256(self):
        """The digest of what it has on its disk."""
        return self.torrent.sha256_in(self.downloads, self.makes_empty_files)

    def leave(self):
        """Makes it leave the swarm in good order, as when its user stops it."""
        self.process.signal(self.stop_signal)

    def end(self):
        """Sees its process end, once it has left."""
        assert self.process.wait(20) is not None, f"{self} does not end"

    def http(self, method, port, path, body=None, headers={}):
        """Speaks to its remote control: the response, with its `body` read."""
        try:
            with self.host.entered():
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
                connection.connect()
            with contextlib.closing(connection):
                connection.request(method, path, body, headers)
                response = connection.getresponse()
                response.body = response.read()
                return response
        except (OSError, http.client.HTTPException) as error:
            raise Unreachable from error


class LibTorrent(Client):
    """The library behind qBittorrent and Deluge, by way of its Python binding."""

    program = "/usr/bin/python3"  # Debian's own, whichever runs the tests: it has the package.
    package = "python3-libtorrent"

    def command(self):
        self.status = self.directory / "status.json"
        script = pathlib.Path(__file__).with_name("libtorrent_peer.py")
        return [self.program, script, self.source, self.downloads, PORT, self.rate, self.status,
                *(["--seed"] if self.seeds else []), *(["--exchange"] if self.exchanges else []),
                *(["--metadata"] if self.by_magnet else [])]

    def look(self):
        if not self.status.exists():
            raise Unreachable
        report = json.loads(self.status.read_text())
        return report["progress"], set(report["sources"])


class Transmission(Client):
    """https://github.com/transmission/transmission/blob/3.00/extras/rpc-spec.txt"""

    program = "transmission-daemon"
    package = "transmission-daemon"
    makes_empty_files = False

    session = ""  # The token that its remote control wants to see, against forged requests.

    def command(self):
        (self.directory / "settings.json").write_text(json.dumps({
            "dht-enabled": False,
            "lpd-enabled": False,
            "pex-enabled": self.exchanges,
            "utp-enabled": False,
            "port-forwarding-enabled": False,
            "peer-port": PORT,
            "download-dir": str(self.downloads),
            "speed-limit-down": self.rate >> 10,
            "speed-limit-down-enabled": self.rate != UNLIMITED,
            "watch-dir": str(self.directory),
            "watch-dir-enabled": True,
            "rpc-bind-address": "127.0.0.1",
        }))
        return [self.program, "--foreground", "--log-debug", "--config-dir", self.directory]

    def look(self):
        fields = ["percentDone", "status", "peersFrom", "metadataPercentComplete"]
        torrents = self.call("torrent-get", fields=fields)["torrents"]
        if not torrents and self.by_magnet:
            self.call("torrent-add", filename=self.source)
        if not torrents:
            raise Unreachable
        torrent, = torrents
        is_checking = torrent["status"] in (1, 2)
        names = {"fromCache": "cache", "fromDht": "DHT", "fromLpd": "LSD", "fromLtep": "LTEP",
                 "fromPex": "PEX", "fromTracker": "tracker"}
        sources = {name for key, name in names.items() if torrent["peersFrom"][key]}
        is_there = not is_checking and torrent["metadataPercentComplete"] == 1
        return torrent["percentDone"] if is_there else 0, sources

    def leave(self):
        # At its end it tells UDP trackers, but not HTTP trackers:
        # https://github.com/transmission/transmission/issues/196
        self.call("torrent-stop")

    def end(self):
        self.process.signal(self.stop_signal)
        super().end()

    def call(self, method, **arguments):
        request = json.dumps({"method": method, "arguments": arguments})
        header = "X-Transmission-Session-Id"
        response = self.http("POST", 9091, "/transmission/rpc", request, {header: self.session})
        if response.status == 409:
            self.session = response.headers[header]
            raise Unreachable
        return json.loads(response.body)["arguments"]


class Aria2(Client):
    """https://aria2.github.io/manual/en/html/aria2c.html

    It speaks to UDP trackers only with its DHT enabled, so it has one, without a way in.
    """

    program = "aria2c"
    package = "aria2"
    tells_sources = False
    stop_signal = signal.SIGINT  # On SIGTERM it leaves without a word to the tracker.

    def command(self):
        return [
            self.program, "--no-conf", "--enable-dht=true", "--enable-dht6=false",
            f"--dht-file-path={self.directory}/dht.dat", f"--dht-listen-port={PORT}",
            f"--enable-peer-exchange={'true' if self.exchanges else 'false'}",
            "--bt-enable-lpd=false", f"--listen-port={PORT}",
            f"--dir={self.downloads}", "--file-allocation=none", "--disk-cache=0",
            f"--max-overall-download-limit={self.rate}", "--seed-ratio=0", "--check-integrity=true",
            "--enable-rpc", "--show-console-readout=false", "--enable-color=false",
            "--console-log-level=info", self.source]

    def look(self):
        request = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "aria2.tellActive"})
        downloads = json.loads(self.http("POST", 6800, "/jsonrpc", request).body)["result"]
        if not downloads:
            raise Unreachable
        # A magnet link's metadata is a download of its own, before the other.
        download = downloads[-1]
        if "bittorrent" not in download or "info" not in download["bittorrent"]:
            raise Unreachable
        return int(download["completedLength"]) / int(download["totalLength"]), set()


class QBittorrent(Client):
    """https://github.com/qbittorrent/qBittorrent/wiki/WebUI-API-(qBittorrent-4.1)"""

    program = "qbittorrent-nox"
    package = "qbittorrent-nox"

    def command(self):
        configuration = self.directory / "qBittorrent" / "config" / "qBittorrent.conf"
        configuration.parent.mkdir(parents=True)
        configuration.write_text(f"""\
[LegalNotice]
Accepted=true

[BitTorrent]
Session\\BTProtocol=TCP
Session\\DHTEnabled=false
Session\\LSDEnabled=false
Session\\PeXEnabled={'true' if self.exchanges else 'false'}
Session\\GlobalDLSpeedLimit={self.rate >> 10}
Session\\IgnoreLimitsOnLAN=false

[Network]
PortForwardingEnabled=false

[Preferences]
WebUI\\Address=127.0.0.1
WebUI\\LocalHostAuth=false
WebUI\\UseUPnP=false
""")
        return [self.program, f"--profile={self.directory}", "--webui-port=8080",
                f"--torrenting-port={PORT}", f"--save-path={self.downloads}", "--skip-dialog=true",
                *(["--skip-hash-check"] if self.seeds else []), self.source]

    def look(self):
        torrents = self.get("torrents/info")
        if not torrents:
            raise Unreachable
        info_hash = torrents[0]["hash"]
        peers = self.get("sync/torrentPeers", hash=info_hash)["peers"].values()
        names = {"H": "DHT", "X": "PEX", "L": "LSD"}
        sources = {names[flag] for peer in peers for flag in peer["flags"].split() if flag in names}
        # The peers that it got by each way, tracker and others, are listed among its trackers.
        ways = self.get("torrents/trackers", hash=info_hash)
        sources |= {"tracker" if "://" in way["url"] else way["url"].strip("* []")
                    for way in ways if way["num_peers"] > 0}
        return torrents[0]["progress"], sources

    def get(self, method, **parameters):
        response = self.http("GET", 8080, f"/api/v2/{method}?{urllib.parse.urlencode(parameters)}")
        if response.status != 200:
            raise Unreachable
        return json.loads(response.body)


class RTorrent(Client):
    """https://rtorrent-docs.readthedocs.io/en/latest/cmd-ref.html"""

    program = "rtorrent"
    package = "rtorrent"
    stop_signal = signal.SIGINT

    def command(self):
        self.control = self.directory / "control"
        configuration = self.directory / "rtorrent.rc"
        session = self.directory / "session"
        session.mkdir()
        configuration.write_text(f"""\
system.daemon.set = true
session.path.set = {session}
directory.default.set = {self.downloads}
network.port_range.set = {PORT}-{PORT}
network.port_random.set = no
network.scgi.open_local = {self.control}
dht.mode.set = disable
protocol.pex.set = {'yes' if self.exchanges else 'no'}
trackers.use_udp.set = yes
pieces.hash.on_completion.set = no
throttle.global_down.max_rate.set_kb = {self.rate >> 10}
log.open_file = "log", "/dev/stdout"
log.add_output = "tracker_info", "log"
schedule2 = test, 0, 0, ((load.start, "{self.source}"))
""")
        return [self.program, "-n", "-o", f"import={configuration}"]

    def look(self):
        downloads = self.call("d.multicall2", "", "main", "d.hash=", "d.hashing=",
                              "d.completed_bytes=", "d.size_bytes=")
        if not downloads:
            raise Unreachable
        (info_hash, is_checking, completed, size), = downloads
        if size <= 1 and self.by_magnet:  # The metadata is not there yet.
            raise Unreachable
        trackers = self.call("t.multicall", info_hash, "", "t.url=", "t.latest_sum_peers=")
        sources = {"DHT" if url.startswith("dht:") else "tracker" for url, peers in trackers if peers}
        return 0 if is_checking else completed / size, sources

    def call(self, method, *arguments):
        """XML-RPC in an SCGI envelope, over a socket in the file system."""
        request = xmlrpc.client.dumps(arguments, method).encode()
        headers = b"CONTENT_LENGTH\0%d\0SCGI\0001\0" % len(request)
        try:
            with socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(10)
                connection.connect(str(self.control))
                connection.sendall(b"%d:%b,%b" % (len(headers), headers, request))
                with connection.makefile("rb") as reply:
                    _, _, response = reply.read().partition(b"\r\n\r\n")
        except OSError as error:
            raise Unreachable from error
        try:
            (value,), _ = xmlrpc.client.loads(response)
        except xmlrpc.client.Fault as fault:  # Of a magnet link, a download takes the place of another.
            raise Unreachable from fault
        return value


ALL = (LibTorrent, Transmission, Aria2, QBittorrent, RTorrent)
