"""How long this machine keeps a program that is ready to run from running.

Two cores are shared by a cluster, its broker, its clients and whatever else runs. A test that bounds the time of an
answer takes off what the machine itself took: a thread that only ever sleeps for a moment notes how much too late it
is woken.
"""

import threading
import time

NAP = 0.005


class Stalls:
    """Watches in the background, within a `with`."""

    def __enter__(self):
        self._longest, self._ends = 0.0, threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._ends.set()
        self._thread.join()

    @property
    def longest(self):
        """Seconds."""
        return self._longest

    def _watch(self):
        before = time.monotonic()
        while not self._ends.wait(NAP):
            now = time.monotonic()
            self._longest = max(self._longest, now - before - NAP)
            before = now
