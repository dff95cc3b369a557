"""Datagrams from anybody: with source addresses and ports that are not one's own.

As a program, `flood.py PORT KIND SEED`, it sends them to 127.0.0.1 as fast as it can until SIGTERM
comes, and prints how many; as a module it makes them.
"""

import random
import signal
import socket
import struct
import sys

import bep15

MAXIMUM = 2_048


def datagram(source, port, payload):
    """An IPv4 packet with a UDP datagram; `source` is (address, port). The kernel adds the check sum of the header."""
    length = 8 + len(payload)
    header = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + length, 0, 0, 64, socket.IPPROTO_UDP, 0,
                         socket.inet_aton(source[0]), socket.inet_aton("127.0.0.1"))
    # Without a check sum of its own, which IPv4 allows.
    return header + struct.pack("!HHHH", source[1], port, length, 0) + payload


class Forger:
    """Sends with any source; as root."""

    def __init__(self, port):
        self._port = port
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._socket.close()

    def send(self, source, payload):
        self._socket.sendto(datagram(source, self._port, payload), ("127.0.0.1", 0))


def junk(random):
    """Everything that is nearly, or not at all, a request."""
    transaction, connection = random.getrandbits(32), random.getrandbits(64)
    announce = bep15.announce_request(connection, transaction, random.randbytes(20), random.randbytes(20), 6881, left=1)
    scrape = bep15.scrape_request(connection, transaction, random.randbytes(20))
    match random.randrange(7):
        case 0:
            return random.randbytes(random.randrange(MAXIMUM + 1))
        case 1:
            return bep15.connect_request(transaction, magic=connection)
        case 2:
            return bep15.connect_request(transaction)[:random.randrange(16)]
        case 3:
            return announce[:random.randrange(98)]
        case 4:
            return scrape + random.randbytes(random.randrange(1, 1_500))
        case 5:
            return struct.pack("!QII", connection, random.getrandbits(32), transaction)
        case 6:
            return announce


def forged(random):
    """An announce or a scrape that would be fine, had the connection id been given to its sender."""
    connection, transaction = random.getrandbits(64), random.getrandbits(32)
    if random.random() < 0.5:
        return bep15.scrape_request(connection, transaction, random.randbytes(20))
    return bep15.announce_request(connection, transaction, random.randbytes(20), random.randbytes(20), 6881, left=1)


def connects(random):
    return bep15.connect_request(random.getrandbits(32))


KINDS = {"junk": junk, "forged": forged, "connects": connects}


def anybody(random):
    """One of sixteen million addresses of this machine, and any port."""
    return f"127.{random.randrange(256)}.{random.randrange(256)}.{random.randrange(1, 255)}", random.randrange(65_536)


def main(port, kind, seed):
    draw, sent, told_to_stop = random.Random(seed), 0, []
    signal.signal(signal.SIGTERM, lambda *_: told_to_stop.append(True))
    # Made before the flood: it is to be a fast one.
    packets = [datagram(anybody(draw), port, KINDS[kind](draw)) for _ in range(20_000)]
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW) as raw:
        while not told_to_stop:
            for packet in packets:
                raw.sendto(packet, ("127.0.0.1", 0))
            sent += len(packets)
    print(sent)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
