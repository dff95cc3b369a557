"""A minute of load and faults; `soak.py` takes as long as one likes."""

import unittest

import cluster
import soak

setUpModule = cluster.require_cluster


class ShortSoak(unittest.TestCase):

    def test_a_minute(self):
        print(flush=True)
        with cluster.Cluster(soak.BUSES["rabbitmq"]) as trackers:
            run = soak.Soak(trackers, seed=1, rate=400, say=lambda text: print(text, flush=True))
            run.run(seconds=60, period=8)
            run.check(soak.BOUND)
            self.assertEqual(len(run.faults), 4, run.faults)


if __name__ == "__main__":
    unittest.main()
