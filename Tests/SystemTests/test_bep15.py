"""The tracker against raw datagrams, and so `bep15.py` against a tracker."""

import unittest

import bep15
from world import World, require_everything

setUpModule = require_everything


class RawDatagrams(unittest.TestCase):

    def test_without_a_connection_id_there_is_an_error_or_silence(self):
        info_hash, peer_id, transaction = bytes(20), b"-SW0000-rawdatagrams", 0x1234_5678
        with World() as world:
            for address in world.tracker.addresses:
                client, impatient = world.ask(address), world.ask(address, timeout=1, tries=1)
                right = client.connect()
                wrong = right ^ 1

                announce = bep15.announce_request(wrong, transaction, info_hash, peer_id, 6881, left=0)
                for request in (announce, bep15.scrape_request(wrong, transaction, info_hash)):
                    with self.subTest(address=address, request=request.hex()):
                        reply = client.exchange(request)
                        with self.assertRaises(bep15.TrackerError) as error:
                            bep15.body(reply, bep15.Action.ANNOUNCE, transaction)
                        self.assertNotEqual(str(error.exception), "", "an error has a reason")
                        self.assertLessEqual(len(reply), len(request), "no amplification before the proof")

                connect = bep15.connect_request(transaction)
                magicless = bep15.connect_request(transaction, magic=bep15.MAGIC + 1)
                for request in (magicless, connect[:15], announce[:97]):
                    with self.subTest(address=address, request=request.hex()):
                        self.assertRaises(bep15.Silence, impatient.exchange, request)

                self.assertEqual(client.scrape(info_hash), [bep15.Scraped(0, 0, 0)])


if __name__ == "__main__":
    unittest.main()
