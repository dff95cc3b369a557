"""Message brokers as Debian has them, each on a host of its own: RabbitMQ, ActiveMQ, and a slow way to one.

A broker begins with nothing and keeps nothing. It runs in a process namespace of its own, so that
`kill` ends all of it, the Erlang and Java machines included, as a power cut would.
"""

import asyncio
import contextlib
import glob
import pathlib
import shutil
import socket
import stat
import threading
import time

from namespaces import wait_until

PORT = 61613
USER, PASSWORD = "swarm", "keeper-of-the-swarm"

CONTAINED = ["unshare", "--pid", "--fork", "--kill-child=KILL", "--mount-proc"]


class Broker:
    """A broker on a host. `start` returns when it takes connections; `password` is the one that it wants then."""

    package = program = None

    def __init__(self, host, directory, password=PASSWORD):
        self.host, self.directory, self.password = host, pathlib.Path(directory), password
        self.directory.mkdir(parents=True)
        self.process = None

    @property
    def url(self):
        """For `--bus`."""
        return f"stomp://{USER}:{PASSWORD}@{self.place}"

    @property
    def place(self):
        return f"{self.host.ipv4}:{PORT}"

    def start(self, wait=True):
        self._prepare()
        self.process = self.host.start([*CONTAINED, *self._command()], self.directory, self._environment())
        if wait:
            self.wait()

    def wait(self):
        wait_until(self.is_open, 60, lambda: f"{self.program} takes connections; it says:\n{self.process.words()}")

    def is_open(self):
        status = self.process.status
        assert status is None, f"{self.program} ended with status {status}:\n{self.process.words()}"
        with contextlib.suppress(OSError), self.host.entered():
            socket.create_connection((self.host.ipv4, PORT), timeout=1).close()
            return True

    def kill(self):
        self.process.kill()

    def restart(self, wait=True):
        self.kill()
        self.start(wait)

    def _prepare(self):
        pass

    def _environment(self):
        return {}


class RabbitMQ(Broker):
    program, package = "/usr/lib/rabbitmq/bin/rabbitmq-server", "rabbitmq-server"

    def _prepare(self):
        (self.directory / "rabbitmq.conf").write_text(
            f"listeners.tcp = none\nstomp.listeners.tcp.1 = {self.host.ipv4}:{PORT}\n"
            f"default_user = {USER}\ndefault_pass = {self.password}\nloopback_users = none\n")
        (self.directory / "enabled_plugins").write_text("[rabbitmq_stomp].\n")
        cookie = self.directory / ".erlang.cookie"
        cookie.unlink(missing_ok=True)
        cookie.write_text("SWARMKEEPERTESTS")
        cookie.chmod(stat.S_IRUSR)

    def _command(self):
        # Erlang's own name server goes with the broker, and a broker that was killed leaves no state to it.
        shutil.rmtree(self.directory / "mnesia", ignore_errors=True)
        return ["sh", "-c", f"epmd & exec {self.program}"]

    def _environment(self):
        place = self.directory
        return {
            "RABBITMQ_NODENAME": "broker@localhost", "RABBITMQ_CONFIG_FILE": str(place / "rabbitmq"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(place / "enabled_plugins"),
            "RABBITMQ_MNESIA_BASE": str(place / "mnesia"), "RABBITMQ_LOG_BASE": str(place / "logs"),
            "RABBITMQ_PID_FILE": str(place / "pid"), "RABBITMQ_DIST_PORT": "25672",
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1} +S 1",
        }


class ActiveMQ(Broker):
    program, package = "java", "activemq"
    home = "/usr/share/activemq"

    def _prepare(self):
        # Who may log in; without it anybody may.
        (self.directory / "activemq.xml").write_text(f"""<beans
  xmlns="http://www.springframework.org/schema/beans" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"
  xsi:schemaLocation="http://www.springframework.org/schema/beans
    http://www.springframework.org/schema/beans/spring-beans.xsd
    http://activemq.apache.org/schema/core http://activemq.apache.org/schema/core/activemq-core.xsd">
  <broker xmlns="http://activemq.apache.org/schema/core" brokerName="tests" persistent="false" useJmx="false">
    <plugins><simpleAuthenticationPlugin><users>
      <authenticationUser username="{USER}" password="{self.password}" groups="users"/>
    </users></simpleAuthenticationPlugin></plugins>
    <transportConnectors>
      <transportConnector name="stomp" uri="stomp://{self.host.ipv4}:{PORT}"/>
    </transportConnectors>
  </broker>
</beans>
""")

    def _command(self):
        jars = sorted(glob.glob(f"{self.home}/lib/*.jar") + glob.glob(f"{self.home}/lib/optional/*.jar"))
        return ["java", "-Xmx256m", "-XX:-UsePerfData", "-cp", ":".join(jars), f"-Dactivemq.home={self.home}",
                f"-Dactivemq.base={self.directory}", "org.apache.activemq.console.Main", "start",
                f"xbean:file:{self.directory}/activemq.xml"]


ALL = [RabbitMQ, ActiveMQ]


class Relay:
    """A slow way to a broker, on a host of its own: trackers connect here instead. Use it in a `with` statement.

    Each byte takes `latency` seconds in each direction, and while a stall lasts nothing arrives; nothing is lost. The
    broker may come later. `connections` counts those that were made here.
    """

    CHUNK = 64 << 10
    WAITING = 1_024
    """Chunks that are on their way in one direction; then the sender has to wait."""

    def __init__(self, host, broker, latency=0.0):
        self.host, self._broker, self.latency = host, broker, latency
        self.connections = 0
        self._stalled_until = 0.0
        self._loop = asyncio.new_event_loop()
        opened = threading.Event()
        self._thread = threading.Thread(target=self._run, args=[opened], daemon=True)
        self._thread.start()
        assert opened.wait(30), "the relay takes no connections"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    @property
    def place(self):
        return f"{self.host.ipv4}:{PORT}"

    def stall(self, seconds):
        self._stalled_until = time.monotonic() + seconds

    def _run(self, opened):
        # The thread lives on the relay's host: so do the sockets that it opens later.
        with self.host.entered():
            server = self._loop.run_until_complete(asyncio.start_server(self._relay, self.host.ipv4, PORT))
            opened.set()
            self._loop.run_forever()
            server.close()
            self._loop.run_until_complete(self._end())
            self._loop.close()

    async def _end(self):
        ways = asyncio.all_tasks() - {asyncio.current_task()}
        for way in ways:
            way.cancel()
        await asyncio.gather(*ways, return_exceptions=True)

    async def _relay(self, reader, writer):
        self.connections += 1
        writers = [writer]
        try:
            with contextlib.suppress(OSError):
                far_reader, far_writer = await asyncio.open_connection(self._broker.host.ipv4, PORT)
                writers.append(far_writer)
                ways = [asyncio.ensure_future(self._carry(*ends))
                        for ends in [(reader, far_writer), (far_reader, writer)]]
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
                for way in ways:
                    way.cancel()
        finally:
            for end in writers:
                end.transport.abort()

    async def _carry(self, reader, writer):
        """Carries one direction until it ends, all that was sent before its end included."""
        waiting = asyncio.Queue(self.WAITING)
        taking = asyncio.ensure_future(self._take(reader, waiting))
        try:
            while (due_and_chunk := await waiting.get()):
                due, chunk = due_and_chunk
                while (wait := max(due, self._stalled_until) - time.monotonic()) > 0:
                    await asyncio.sleep(wait)
                writer.write(chunk)
                with contextlib.suppress(OSError):
                    await writer.drain()
        finally:
            taking.cancel()

    async def _take(self, reader, waiting):
        with contextlib.suppress(OSError):
            while chunk := await reader.read(self.CHUNK):
                await waiting.put((time.monotonic() + self.latency, chunk))
        await waiting.put(None)
