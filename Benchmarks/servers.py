"""The servers that `run` measures: how each is started, asked whether it serves, looked at and stopped."""

import contextlib
import mmap
import os
import pathlib
import re
import resource
import shutil
import socket
import struct
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ECHO = HERE / ".build/release/echo"
TICK = os.sysconf("SC_CLK_TCK")


class Failure(Exception):
    """Something that whoever runs the benchmark can put right."""


def check(options):
    """Fails early where a program is missing, and says how to get it."""
    cores = os.sched_getaffinity(0)
    chosen = {options.server_core, options.generator_core}
    if len(chosen) < 2 or not chosen <= cores:
        raise Failure(f"server and generator need a core each, of {sorted(cores)}: --server-core, --generator-core")
    wanted = {"generator": (options.generator, "swift build -c release --product tracker")}
    if {"swarmkeeper", "unrecorded"} & set(options.servers):
        wanted["tracker"] = (options.tracker, "swift build -c release --product tracker")
    if "echo" in options.servers:
        build = ["swift", "build", "-c", "release", "--package-path", os.path.relpath(HERE)]
        if options.echo == str(ECHO) and not ECHO.exists() and shutil.which("swift"):
            print("building the echo server…", file=sys.stderr, flush=True)
            if subprocess.run(build, stdout=sys.stderr).returncode != 0:
                raise Failure("the echo server cannot be built; --servers swarmkeeper,opentracker does without")
        wanted["echo"] = (options.echo, " ".join(build))
    if "opentracker" in options.servers:
        wanted["opentracker"] = (options.opentracker, "apt-get install opentracker")
    if options.allocations:
        wanted["cc"] = ("cc", "apt-get install gcc")
    for flag, (program, remedy) in wanted.items():
        if shutil.which(program) is None:
            raise Failure(f"there is no program {program}: `{remedy}`, or give --{flag}")


def command(name, options, port, directory):
    if name in ("swarmkeeper", "unrecorded"):
        # With its log on, as it is meant to be used; and without its recording, to see what that costs.
        recording = ["--recording", "none"] if name == "unrecorded" else []
        return [
            options.tracker, "serve", "--udp", f"127.0.0.1:{port}", "--console", "none", "--data", str(directory),
            *recording]
    if name == "opentracker":
        # Debian builds it for listed torrents only, so it gets a list of all. As root it changes into the directory.
        return [
            options.opentracker, "-i", "127.0.0.1", "-p", str(port), "-P", str(port), "-d", str(directory),
            "-w", "whitelist"]
    if name == "echo":
        return [options.echo, "127.0.0.1", str(port)]
    raise Failure(f"no server is called {name}: there are swarmkeeper, unrecorded, opentracker and echo")


@contextlib.contextmanager
def start(name, options, parent, torrents, seed, counter=None):
    """Starts a server on a core of its own, waits until it serves, and stops it in the end, by its pid."""
    directory = pathlib.Path(parent) / name
    directory.mkdir()
    os.chmod(parent, 0o755)  # opentracker gives up root before it reads its list
    port = free_port()
    if name == "opentracker":
        with open(directory / "whitelist", "w") as file:
            file.writelines(info_hash(seed, torrent).hex() + "\n" for torrent in range(torrents))
    output = open(directory / "output", "wb")
    process = subprocess.Popen(
        command(name, options, port, directory), stdin=subprocess.DEVNULL, stdout=output, stderr=output,
        env={**os.environ, **(counter.environment if counter else {})},
        preexec_fn=lambda: os.sched_setaffinity(0, {options.server_core}))
    server = Server(name, process, port)
    try:
        server.wait_until_serving(info_hash(seed, torrents - 1), directory / "output")
        yield server
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        output.close()
        shutil.rmtree(directory, ignore_errors=True)


class Server:
    def __init__(self, name, process, port):
        self.name, self.process, self.port = name, process, port

    def spent(self):
        """Seconds that processors have worked for it, all its threads together."""
        text = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text()
        fields = text[text.rindex(")") + 2:].split()
        return (int(fields[11]) + int(fields[12])) / TICK

    def resident(self):
        """Bytes of memory that are in use and present."""
        text = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"^VmRSS:\s+(\d+) kB", text, re.MULTILINE).group(1)) * 1024

    def settle(self):
        """Waits, up to 30 seconds, until it has stopped working off what it was sent."""
        for _ in range(30):
            before = self.spent()
            time.sleep(1)
            if self.spent() - before < 0.05:
                return

    def wait_until_serving(self, torrent, output):
        """Asks until one peer is told of another: then opentracker has read its list, too."""
        end = time.monotonic() + 60
        with contextlib.ExitStack() as stack:
            clients = []
            for host in ("127.9.0.1", "127.9.0.2"):
                client = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
                client.bind((host, 0))
                client.connect(("127.0.0.1", self.port))
                client.settimeout(0.2)
                clients.append(client)
            while time.monotonic() < end:
                if self.process.poll() is not None:
                    text = output.read_text(errors="replace")[-2000:].strip()
                    raise Failure(f"{self.name} ended at once, with status {self.process.returncode}: {text}")
                with contextlib.suppress(OSError):
                    lists = [announce(client, torrent, event=2) for client in clients]
                    if lists[1] > 0:
                        for client in clients:
                            announce(client, torrent, event=3)
                        return
                time.sleep(0.1)
        raise Failure(f"{self.name} does not tell peers of each other after a minute: {output.read_text()[-2000:]}")


def announce(client, torrent, event):
    """One whole exchange of BEP 15. Returns how many peers were listed."""
    client.send(struct.pack(">QII", 0x41727101980, 0, 7))
    connection = struct.unpack(">8xQ", client.recv(2048)[:16])[0]
    client.send(struct.pack(
        ">QII20s20sQQQIIIiH", connection, 1, 8, torrent, b"-BM0001-" + os.urandom(12), 0, 1, 0, event, 0, 0, 50,
        40000))
    return (len(client.recv(2048)) - 20) // 6


def free_port():
    """A port that is free for UDP and TCP alike: opentracker insists on both."""
    while True:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as first, socket.socket() as second:
            first.bind(("127.0.0.1", 0))
            with contextlib.suppress(OSError):
                second.bind(first.getsockname())
                return first.getsockname()[1]


MASK = (1 << 64) - 1


def mixed(value):
    """SplitMix64's finaliser, as in Sources/Primitives/RandomStream.swift."""
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & MASK
    return value ^ (value >> 31)


def info_hash(seed, torrent):
    """The load generator's torrents, as in Sources/LoadGenerator/LoadPopulation.swift."""
    first = (mixed(seed ^ 0x746F7272656E7473) + 4 * torrent) & MASK
    return b"".join(mixed((first + part) & MASK).to_bytes(8, "big") for part in range(3))[:20]


class Counter:
    """How often a server has allocated memory, from a library that is loaded before its C library."""

    def __init__(self, directory):
        library = pathlib.Path(directory) / "allocations.so"
        subprocess.run(
            ["cc", "-O2", "-shared", "-fPIC", "-o", str(library), str(HERE / "allocations.c")], check=True)
        path = pathlib.Path(directory) / "allocations"
        path.write_bytes(bytes(8))
        path.chmod(0o666)
        with open(path, "r+b") as file:
            self.memory = mmap.mmap(file.fileno(), 8)
        self.environment = {"LD_PRELOAD": str(library), "ALLOCATIONS": str(path)}

    def read(self):
        return struct.unpack("=Q", self.memory[:8])[0]


def busy(cores):
    """Seconds for which each core has worked for anybody, since the host started."""
    result = {}
    for line in pathlib.Path("/proc/stat").read_text().splitlines():
        match = re.match(r"cpu(\d+) (.*)", line)
        if match and int(match.group(1)) in cores:
            user, nice, system, _, _, irq, softirq, steal = map(int, match.group(2).split()[:8])
            result[int(match.group(1))] = (user + nice + system + irq + softirq + steal) / TICK
    return result


def children():
    """Seconds that processors have worked for this process's ended children."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def processor():
    match = re.search(r"^model name\s*: (.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return match.group(1) if match else "unknown processor"
