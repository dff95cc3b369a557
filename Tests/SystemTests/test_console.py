"""The console in a real browser, over three trackers that act as one: what each page shows is what the API says.

Pictures of each page, light and dark, wide and narrow, are kept in the directory that SWARMKEEPER_PICTURES names:

    SWARMKEEPER_PICTURES=/tmp/pictures /usr/bin/python3 Tests/SystemTests/run.py -k test_pictures
"""

import json
import os
import pathlib
import signal
import subprocess
import tempfile
import time
import unittest
import urllib.parse
import urllib.request

import bep15
import browser
import metainfo
from cluster import CONSOLE, DETECTION, Cluster
from serving import TrackerTest, free_port, require_tracker, tracker_program, wait_until

PASSWORD = "correct horse battery"
PAGES = ("overview", "trackers", "swarms", "timeline", "torrents", "users", "settings")
POLICY = {"default-src": "'none'", "script-src": "'self'", "style-src": "'self'", "img-src": "'self' data:",
          "connect-src": "'self'", "form-action": "'self'", "base-uri": "'none'", "frame-ancestors": "'none'"}
HOSTILE = ("<img src=x onerror=alert(1)><script>alert(2).iso", "'\"><svg onload=alert(3)>", "invoice\u202efdp.exe", "A" * 250)
GONE = ("ERR_CONNECTION_REFUSED", "ERR_CONNECTION_RESET", "ERR_INCOMPLETE_CHUNKED_ENCODING", "ERR_EMPTY_RESPONSE")
"""What the browser says of a tracker that was killed."""


def setUpModule():
    require_tracker()
    if lacks := browser.missing():
        raise AssertionError("\n  ".join(["the system tests miss", *lacks]))


class ConsoleTest(TrackerTest):
    """Three trackers on loopback, the third of them master, and a browser."""

    expected = ()
    """Complaints of the browser that a test provokes."""

    def setUp(self):
        key = self.directory / "cluster.key"
        key.write_text(os.urandom(32).hex())
        key.chmod(0o600)
        members = [flag for number in (1, 2, 3) for flag in ("--members", number)]
        self.common = ["--bus", f"multicast://239.192.7.8:{free_port()}?interface=lo", "--cluster-key-file", key, *members,
                       *self.flags()]
        self.places = {number: self.place() for number in (1, 2, 3)}
        self.trackers = {number: self.begin(number) for number in (1, 2, 3)}
        self.wait_for_master(3)
        self.browser = self.stack.enter_context(browser.Browser(self.directory))

    def tearDown(self):
        self.assertEqual(self.browser.problems(self.expected), [])

    def flags(self):
        return []

    def begin(self, number):
        return self.start(self.places[number], "--id", number, *self.common)

    # The API, which the pages are compared with

    def origin(self, number):
        return f"http://127.0.0.1:{self.places[number].console}"

    def api(self, number, path, **parameters):
        query = f"?{urllib.parse.urlencode(parameters)}" if parameters else ""
        with urllib.request.urlopen(f"{self.origin(number)}/api/v1/{path}{query}", timeout=30) as reply:
            return json.load(reply)

    def order(self, number, method, path, body=None, **headers):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            f"{self.origin(number)}/api/v1/{path}", data, method=method,
            headers={"Content-Type": "application/json", "Origin": self.origin(number), **headers})
        with urllib.request.urlopen(request, timeout=60) as reply:
            return json.loads(reply.read() or b"null")

    def cluster(self, number):
        """The cluster as a tracker sees it; nothing where it does not answer."""
        try:
            return self.api(number, "cluster")
        except OSError:
            return None

    def wait_for_master(self, master, among=(1, 2, 3), seconds=40):
        def is_there():
            views = [self.cluster(number) for number in among]
            return all(view and view["isServing"] and view["master"] == master for view in views)
        wait_until(is_there, seconds, lambda: f"tracker {master} is master: {[self.cluster(n) for n in among]}")

    def announce(self, number, info_hash, *ports, left=0):
        """Has a peer at each port announce to a tracker."""
        for port in ports:
            with bep15.Client("127.0.0.1", self.places[number].udp, timeout=1, tries=60) as client:
                client.announce(info_hash, port, left=left)

    def wait_for_swarms(self, number, total):
        wait_until(lambda: self.api(number, "swarms")["total"] == total, 10, lambda: self.api(number, "swarms"))


class Pages(ConsoleTest):

    def test_overview_tells_the_state_in_a_sentence_and_in_charts(self):
        self.announce(1, bytes(20), 7001, 7002)
        self.announce(2, bytes(19) + b"\1", 7003, left=5)
        self.wait_for_swarms(1, 2)
        self.browser.open(self.origin(1))
        self.browser.wait_for_text("#sentence", "3 trackers serve; 3 is master")
        self.browser.wait_for_text("#sentence", "nothing is behind")
        epoch = self.cluster(1)["epoch"]
        wanted = {"Swarms": "2", "Seeders": "2", "Leechers": "1", "Epoch": f"{epoch['round']}.{epoch['id']}"}

        def are_shown():
            figures = dict(zip(self.browser.texts(".figures dt"), self.browser.texts(".figures dd"), strict=True))
            return {name: figures[name] for name in wanted} == wanted
        wait_until(are_shown, 5, self.browser.told)
        self.assertEqual(self.browser.texts("#page .legend li span:nth-child(2)"),
                         ["All trackers", "Median", "99 %", "Swarms", "Seeders", "Leechers"])
        self.assertIn("Swarms 2, between", self.browser.find("#chart-swarms").get_attribute("aria-label"))
        self.browser.click(".chart:nth-child(1) .choice button:nth-child(2)")
        wait_until(lambda: "each=announces" in self.browser.address, 5, self.browser.told)
        self.assertEqual(self.browser.texts(".chart:nth-child(1) .legend li span:nth-child(2)"),
                         ["Tracker 1", "Tracker 2", "Tracker 3"])
        election = next(one for one in self.transitions(1) if one["kind"] == "master")
        self.assertEqual(election["tracker"], 3)

    def transitions(self, number):
        """The transitions that a tracker remembers, as its stream begins with them."""
        told = []
        with urllib.request.urlopen(f"{self.origin(number)}/api/v1/events", timeout=30) as stream:
            kind = None
            for line in stream:
                line = line.decode().rstrip("\n")
                if line.startswith("event:"):
                    kind = line[6:].strip()
                elif line.startswith("data:") and kind == "transition":
                    told.append(json.loads(line[5:]))
                elif line.startswith("data:") and told:
                    return told
        return told

    def test_trackers_shows_what_the_api_tells(self):
        self.browser.open(self.origin(1), "trackers")

        def three_rows():
            found = self.browser.rows("table[aria-label=Trackers] tbody tr")
            return found if len(found) == 3 else None
        rows = wait_until(three_rows, 10, self.browser.told)
        for row, told in zip(rows, self.api(1, "trackers")["trackers"], strict=True):
            self.assertIn(str(told["id"]), row[0].split())
            self.assertIn(told["role"], row[0])
            self.assertIn(told["report"]["host"], row[0])
            self.assertEqual(row[3], f"{told['epoch']['round']}.{told['epoch']['id']}")
        self.assertEqual([row[6] for row in rows[1:]], ["✓ in sync"] * 2)

        def index_is_shown():
            shown = [row[4].replace(",", "") for row in self.browser.rows("table[aria-label=Trackers] tbody tr")]
            return shown == [str(one["commitIndex"]) for one in self.api(1, "trackers")["trackers"]]
        wait_until(index_is_shown, 10, self.browser.told)
        strip = self.browser.find("[data-tracker='2'] canvas").get_attribute("aria-label")
        self.assertRegex(strip, r"^[1-9]\d* of the last \d+ keepalives came in time$")
        # A tracker that is killed is seen as down, its silence grows, and its keepalives are missing.
        self.trackers[2].kill()
        wait_until(lambda: "down" in self.browser.text("[data-tracker='2'] .who"), DETECTION + 1, self.browser.told)
        self.assertEqual(self.browser.text(".matrix td.silent .sub"), "not heard")

    def test_the_role_is_handed_over_and_elections_are_forced(self):
        self.browser.open(self.origin(1), "trackers")
        self.browser.click("[data-tracker='2'] button")
        self.browser.click("dialog button.primary")
        # The one that is preferred takes the role back before long: what counts is that it was handed over.
        wait_until(lambda: any(one["kind"] == "master" and one["tracker"] == 2 for one in self.transitions(1)), 20,
                   lambda: self.transitions(1))
        self.wait_for_master(3)
        before = self.cluster(1)["epoch"]["round"]
        self.browser.click("#election")
        self.browser.click("dialog button.primary")
        wait_until(lambda: self.cluster(1)["epoch"]["round"] > before, 20, lambda: self.cluster(1))

    def test_swarms_are_searched_sorted_and_paged_by_the_tracker(self):
        count = 350
        hashes = [number.to_bytes(2, "big") * 10 for number in range(count)]
        with bep15.Client("127.0.0.1", self.places[2].udp, timeout=1, tries=60) as client:
            for info_hash in hashes:
                client.announce(info_hash, 7001, left=1)
        self.announce(1, hashes[7], 7002, 7003)
        self.wait_for_swarms(1, count)
        self.browser.open(self.origin(1), "swarms")
        self.browser.wait_for_text(".tally", f"{count} swarms")
        shown = self.browser.texts(".big tbody td.hash")
        self.assertEqual(shown, [info_hash.hex() for info_hash in hashes[:len(shown)]])
        self.assertLess(len(shown), 100, "rows that nobody sees are in the document")
        self.assertEqual(self.browser.text(".big tbody td.name"), "unknown name")

        def last_is_shown():
            self.browser.run("const e = document.querySelector('.scroller'); e.scrollTop = e.scrollHeight")
            return self.browser.texts(".big tbody td.hash")[-1:] == [hashes[-1].hex()]
        wait_until(last_is_shown, 20, self.browser.told)
        self.assertLess(len(self.browser.texts(".big tbody td.hash")), 100)
        self.assertIn("after=", self.browser.address)
        # What the address says is shown by whoever opens it.
        address = self.browser.address
        self.browser.open(self.origin(2), address.split("#/")[1])
        wait_until(lambda: self.browser.texts(".big tbody td.hash")[:1] > [hashes[0].hex()], 10, self.browser.told)
        self.browser.click_text("From the start")
        wait_until(lambda: self.browser.texts(".big tbody td.hash")[:1] == [hashes[0].hex()], 10, self.browser.told)
        self.browser.click_text("Seeders", ".big")
        wait_until(lambda: self.browser.texts(".big tbody td.hash")[:1] == [hashes[7].hex()], 10, self.browser.told)
        self.assertIn("sort=seeders&order=desc", self.browser.address)
        self.browser.type(".search", "0102")
        wait_until(lambda: self.browser.texts(".big tbody td.hash") == [hashes[0x102].hex()], 10, self.browser.told)
        self.assertIn("q=0102", self.browser.address)

    def test_peers_of_a_swarm(self):
        info_hash = bytes(range(20))
        self.announce(3, info_hash, 7001)
        self.announce(2, info_hash, 7002, left=77)
        self.wait_for_swarms(1, 1)
        self.browser.open(self.origin(1), "swarms")
        self.browser.click(".big tbody td.name a")
        wait_until(lambda: self.browser.texts(".big tbody td.address") == ["127.0.0.1:7001", "127.0.0.1:7002"], 10,
                   self.browser.told)
        self.assertIn(f"#/swarms/{info_hash.hex()}", self.browser.address)
        rows, peers = self.browser.rows(".big tbody tr"), self.api(1, f"swarms/{info_hash.hex()}/peers")["peers"]
        rows = [row for row in rows if any(row)]
        self.assertEqual([row[0] for row in rows], [peer["client"] or "not known" for peer in peers])
        self.assertEqual([row[2] for row in rows], ["\nseeds".strip(), "77 B"])
        # Another peer is there within a few seconds, by itself.
        self.announce(1, info_hash, 7000)
        wait_until(lambda: self.browser.texts(".big tbody td.address")[:1] == ["127.0.0.1:7000"], 5, self.browser.told)

    def test_settings_come_with_their_source(self):
        self.browser.open(self.origin(2), "settings")
        told = self.api(2, "settings")
        rows = wait_until(lambda: self.browser.rows(".values tbody tr"), 10, self.browser.told)
        self.assertEqual([(row[0], row[2]) for row in rows], [(one["key"], one["source"]) for one in told["settings"]])
        secret = {one["key"] for one in told["settings"] if one["isSecret"]}
        for row, one in zip(rows, told["settings"], strict=True):
            self.assertEqual(row[1], "secret, not shown" if row[0] in secret else one["value"])
        self.assertIn(told["profile"]["promises"], self.browser.text("#page"))
        self.browser.click_text("Flag", ".choice")
        flags = {one["key"] for one in told["settings"] if one["source"] == "flag"}
        wait_until(lambda: {row[0] for row in self.browser.rows(".values tbody tr")} == flags, 5, self.browser.told)

    def test_the_recording_is_copied_and_its_file_is_named(self):
        self.announce(2, bytes(20), 7001)
        self.browser.open(self.origin(2), "settings")
        self.browser.wait_for_text("#recording p", "Recorded for tracker replay: the last ")
        self.browser.click("#copy-recording")
        self.browser.wait_for_text("#notices", "It is copied to ")
        copy, = self.places[2].data.glob("recording-*.swkr")
        self.assertIn(f"It is copied to {copy}.", self.browser.text("#notices"))
        self.assertEqual(copy.stat().st_mode & 0o777, 0o600)
        replay = subprocess.run([tracker_program(), "replay", copy], capture_output=True, text=True, check=True)
        self.assertIn("effects: the same in ", replay.stderr)

    def test_timeline_shows_causes_and_effects(self):
        self.browser.open(self.origin(1), "timeline?view=list&hide=commit")
        told = [one for one in self.transitions(1) if one["kind"] != "commit"]
        wait_until(lambda: self.browser.text(".tally") == f"{len(told)} transition{'s' if len(told) > 1 else ''}", 10,
                   self.browser.told)
        shown = self.browser.texts(".big td.two-lines")
        newest_first = [one["text"] for one in sorted(told, key=lambda one: (one["at"], one["number"]), reverse=True)]
        self.assertEqual(shown, newest_first[:len(shown)])
        # The same of the lanes, with the keyboard: from transition to transition, closer, and back.
        caused = next(one for one in reversed(told) if one["causes"])
        self.browser.open(self.origin(1), f"timeline?event={caused['number']}")
        self.browser.wait_for_text(".chosen h2", caused["text"])
        causes = self.browser.texts(".chosen section:nth-child(1) li span:last-child")
        by_number = {one["number"]: one for one in self.transitions(1)}
        for number in caused["causes"]:
            if number in by_number:
                self.assertIn(by_number[number]["text"], "\n".join(causes))
        self.browser.run("document.querySelector('canvas.lanes').focus()")
        self.browser.press("p")
        wait_until(lambda: f"event={caused['number']}" not in self.browser.address, 5, self.browser.told)
        span = self.span()
        self.browser.press("+")
        wait_until(lambda: self.span() < span, 5, self.browser.told)
        # And with the mouse: a wheel zooms, a drag to the right goes back in time.
        span = self.span()
        self.browser.wheel("canvas.lanes", 300)
        wait_until(lambda: self.span() > span, 5, self.browser.told)
        begin = self.begin_of_view()
        self.browser.drag("canvas.lanes", 200)
        wait_until(lambda: self.begin_of_view() < begin, 5, self.browser.told)
        self.browser.click_text("Back to now")
        wait_until(lambda: "from=" not in self.browser.address, 5, self.browser.told)

    def begin_of_view(self):
        return int(urllib.parse.parse_qs(self.browser.address.partition("?")[2]).get("from", [time.time() * 1000])[0])

    def span(self):
        query = urllib.parse.parse_qs(self.browser.address.partition("?")[2])
        return int(query["to"][0]) - int(query["from"][0]) if "to" in query else int(query.get("span", ["60000"])[0])

    def test_keys(self):
        from selenium.webdriver.common.keys import Keys
        self.browser.open(self.origin(1))
        self.browser.press(Keys.TAB)
        self.assertEqual(self.browser.run("return document.activeElement.id"), "skip")
        pages = self.browser.run("return [...document.querySelectorAll('nav a:not([href^=\"/\"])')].map((link) => link.hash.slice(2))")
        self.assertEqual(pages, list(PAGES))
        for at, page in enumerate(pages, 1):
            self.browser.press(str(at))
            wait_until(lambda: f"#/{page}" in self.browser.address, 5, self.browser.told)
            self.assertEqual(self.browser.run("return document.querySelector('nav a[aria-current=page]').hash"), f"#/{page}")
        self.browser.press("3")
        self.browser.wait_for(".big")
        self.browser.press("/")
        wait_until(lambda: self.browser.run("return document.activeElement.type") == "search", 5, self.browser.told)
        self.browser.press("1")
        self.assertIn("#/swarms", self.browser.address)
        self.browser.press(Keys.ESCAPE, "?")
        self.browser.wait_for_text("dialog", "the pages, in the order of the menu")
        self.browser.press(Keys.ESCAPE)
        wait_until(lambda: self.browser.text("dialog") is None, 5, self.browser.told)
        self.browser.press("t", "t")
        theme = lambda: self.browser.run("return document.documentElement.dataset.theme")
        wait_until(lambda: theme() == "dark", 5, self.browser.told)
        self.browser.open(self.origin(1))
        self.assertEqual(self.browser.run("return document.documentElement.dataset.theme"), "dark", "the theme is forgotten")

    def test_pictures(self):
        """Each page, light and dark, wide and narrow: named, labelled, legible, and not wider than the window."""
        self.announce(1, bytes(20), 7001)
        self.wait_for_swarms(1, 1)
        place = os.environ.get("SWARMKEEPER_PICTURES")
        for page in (*PAGES, f"swarms/{bytes(20).hex()}", "timeline?view=list"):
            self.browser.open(self.origin(1), page)
            for size in (browser.WIDE, browser.NARROW):
                for scheme in ("light", "dark"):
                    with self.subTest(page=page, size=size, scheme=scheme):
                        self.browser.look(size, scheme)
                        time.sleep(0.5)  # For the drawings, which follow the size.
                        if place:
                            pathlib.Path(place).mkdir(parents=True, exist_ok=True)
                            name = page.replace("/", "-").replace("?", "-")
                            self.browser.picture(pathlib.Path(place) / f"{name}-{size[0]}-{scheme}.png")
                        self.assertEqual(self.browser.faults_of_page(), [])


class OneDirection(unittest.TestCase):
    """A link that is broken in one direction: the tracker that is not heard notices nothing, and its console tells it."""

    def cells(self, page):
        """(who listens, who speaks) by what the matrix says of it."""
        shown = page.run("return [...document.querySelectorAll('.matrix tbody td')].map((e) => "
                         "[e.className, e.closest('tr').dataset.listener + e.dataset.speaker])")
        return {kind: {pair for one, pair in shown if one == kind} for kind in ("silent", "unknown", "self", "cut")}

    def check(self, member, silent, unknown=()):
        """Has a browser on a tracker's host look at its console: these cells are red and grey, and no others."""
        wanted = {"silent": set(silent), "unknown": set(unknown), "self": {"11", "22", "33"}, "cut": set()}
        with tempfile.TemporaryDirectory() as directory, member.host.entered(), \
                browser.Browser(pathlib.Path(directory) / "browser") as page:
            page.open(f"http://127.0.0.1:{CONSOLE}", "trackers")
            wait_until(lambda: self.cells(page) == wanted, 20, lambda: f"{self.cells(page)}; {page.told()}")
            told = [f"✕ Tracker {pair[0]} does not hear tracker {pair[1]}." for pair in silent]
            self.assertEqual(page.texts(".deaf li"), told)
            for size in (browser.WIDE, browser.NARROW):
                for scheme in ("light", "dark"):
                    page.look(size, scheme)
                    time.sleep(0.5)
                    if place := os.environ.get("SWARMKEEPER_PICTURES"):
                        pathlib.Path(place).mkdir(parents=True, exist_ok=True)
                        page.picture(pathlib.Path(place) / f"deaf-{member.number}-{len(silent)}-{size[0]}-{scheme}.png")
                    self.assertEqual(page.faults_of_page(), [])
            self.assertEqual(page.problems(), [])

    def test_who_does_not_hear_whom_is_seen_at_each_console(self):
        with Cluster("multicast") as trackers:
            one, two, three = trackers.members
            self.check(three, [])
            two.host.nft(f"table inet deaf {{\nchain input {{\ntype filter hook input priority 0\n"
                         f"ip saddr {one.host.ipv4} drop\n}}\n}}\n")
            # All go on: the master hears both.
            for member in (three, one):
                self.check(member, ["21"])
            # What tracker 1 reports does not come to tracker 2, which knows only what it hears itself.
            self.check(two, ["21"], unknown=["12", "13"])
            self.assertEqual(trackers.master(), three)
            two.host.nft("delete table inet deaf\n")
            self.check(one, [])


class Faults(ConsoleTest):
    """Trackers that are cut off, held, and killed, while their consoles are open."""

    expected = GONE

    def test_a_master_that_is_cut_off_from_the_bus(self):
        seconds = 60
        self.browser.open(self.origin(3), "settings")
        self.browser.type("#cut input[type=number]", str(seconds))
        self.browser.click("#do-cut")
        self.browser.wait_for(".countdown")
        fault = self.api(3, "faults")["faults"][0]
        self.assertEqual(fault["from"], "bus")
        self.assertIn(fault["text"], self.browser.text(".faults"))
        first = int(self.browser.text(".countdown").split()[0])
        self.assertLessEqual(first, seconds)
        wait_until(lambda: int(self.browser.text(".countdown").split()[0]) < first, 5, self.browser.told)
        # The others have another master soon, and say so; it says itself that it is cut off, since when, and how old
        # its news of the others is.
        self.browser.open(self.origin(1))
        self.browser.wait_for_text("#sentence", "2 of 3 trackers serve; 2 is master", DETECTION + 1)
        self.assertIn("3 is down", self.browser.text("#sentence"))
        self.browser.open(self.origin(3))
        self.browser.wait_for_text("#sentence", "cut off from the bus since ")
        self.assertIn("answers nobody", self.browser.text("#sentence"))
        self.browser.wait_for_text("#as-of", "The others as of ")
        with bep15.Client("127.0.0.1", self.places[3].udp, timeout=1, tries=2) as client, self.assertRaises(bep15.Silence):
            client.connect()
        # Nobody needs the browser for the end of it.
        self.assertEqual(self.browser.problems(self.expected), [])
        self.browser.driver.quit()
        wait_until(lambda: self.api(3, "faults")["faults"] == [], seconds, lambda: self.api(3, "faults"))
        wait_until(lambda: (self.cluster(3) or {}).get("isServing"), 20, lambda: self.cluster(3))
        self.browser = self.stack.enter_context(browser.Browser(self.directory / "again"))
        self.browser.open(self.origin(3))
        self.browser.wait_for_text("#sentence", "3 trackers serve")

    def test_a_tracker_that_is_cut_off_from_its_peers(self):
        self.browser.open(self.origin(1), "settings")
        self.browser.click_text("Peers", "#cut")
        told = self.browser.text("#cut .expect")
        self.assertIn("get no answer", told)
        self.browser.type("#cut input[type=number]", "600")
        self.browser.click("#do-cut")
        self.browser.wait_for(".countdown")
        with bep15.Client("127.0.0.1", self.places[1].udp, timeout=1, tries=2) as client, self.assertRaises(bep15.Silence):
            client.connect()
        self.announce(2, bytes(20), 7001)
        self.browser.go("")
        self.browser.wait_for_text("#sentence", "this one is cut off from its peers since ")
        self.browser.open(self.origin(2))
        self.browser.wait_for_text("#sentence", "3 trackers serve; 3 is master")
        # It goes on following: what others took is here, too.
        self.wait_for_swarms(1, 1)
        self.browser.open(self.origin(1), "settings")
        self.browser.click_text("Mend", ".faults")
        wait_until(lambda: self.api(1, "faults")["faults"] == [], 5, lambda: self.api(1, "faults"))
        self.announce(1, bytes(20), 7002)

    def test_two_trackers_that_do_not_hear_each_other(self):
        self.browser.open(self.origin(1), "settings")
        self.browser.click_text("One tracker", "#cut")
        self.browser.run("const e = document.querySelector('#cut select'); e.value = '2'; "
                         "e.dispatchEvent(new Event('change'))")
        self.browser.click("#do-cut")
        self.browser.wait_for(".countdown")
        self.browser.go("trackers")
        wait_until(lambda: self.browser.text(".matrix td.cut b") == "cut", 10, self.browser.told)
        self.assertEqual(self.browser.run("return document.querySelectorAll('.matrix td.cut').length"), 1)
        # Each of the two still follows the third.
        self.wait_for_master(3)
        self.announce(1, bytes(20), 7001)
        self.announce(2, bytes(20), 7002)

    def test_a_tracker_is_stopped_and_started(self):
        self.browser.open(self.origin(1), "settings")
        self.browser.click("#stop")
        self.browser.click("dialog button.grave")
        self.browser.wait_for("#start")
        with bep15.Client("127.0.0.1", self.places[1].udp, timeout=1, tries=2) as client, self.assertRaises(bep15.Silence):
            client.connect()
        self.browser.go("")
        self.browser.wait_for_text("#sentence", "This tracker is stopped and answers nobody.")
        self.browser.go("settings")
        self.browser.click("#start")
        self.browser.wait_for("#stop", 20)
        self.wait_for_master(3)

    def test_a_stopped_tracker_gets_another_port_by_a_form(self):
        self.expected = (*GONE, "status of 422")
        self.browser.open(self.origin(1), "settings")
        self.browser.wait_for("#stop")
        self.assertFalse(self.browser.find("#change").is_displayed())
        self.browser.click("#stop")
        self.browser.click("dialog button.grave")
        self.browser.wait_for("#change")
        field, port = "#change-listen-udp", free_port()
        self.browser.type(field, "nowhere")
        self.browser.type("#change-id", "2")
        self.browser.click("#do-change")
        self.browser.wait_for_text(f"{field}-problem", "is not an IP address with a port")
        self.assertEqual(self.browser.run("return document.activeElement.id"), "change-id")
        self.browser.type("#change-id", "1")
        self.browser.type(field, f"127.0.0.1:{port}")
        self.browser.click("#change input[name=keep]")
        self.browser.click("#do-change")
        self.browser.wait_for_text(f"{field}-about", "From: this console")
        self.browser.wait_for_text(f"{field}-about", "the flag --udp goes before it")
        self.assertIsNone(self.browser.text(f"{field}-problem"))
        place = os.environ.get("SWARMKEEPER_PICTURES")
        for size in (browser.WIDE, browser.NARROW):
            for scheme in ("light", "dark"):
                with self.subTest(size=size, scheme=scheme):
                    self.browser.look(size, scheme)
                    time.sleep(0.5)
                    if place:
                        pathlib.Path(place).mkdir(parents=True, exist_ok=True)
                        self.browser.run("document.querySelector('#change').scrollIntoView()")
                        self.browser.picture(pathlib.Path(place) / f"change-{size[0]}-{scheme}.png")
                    self.assertEqual(self.browser.faults_of_page(), [])
        self.browser.click("#start")
        self.browser.wait_for("#stop", 20)
        with bep15.Client("127.0.0.1", port, timeout=1, tries=20) as client:
            client.connect()
        self.browser.click("#stop")
        self.browser.click("dialog button.grave")
        self.browser.wait_for("#forget")
        self.browser.click("#forget")
        self.browser.wait_for_text(f"{field}-about", "From: a flag")
        self.assertFalse((self.places[1].data / "console.toml").exists())

    def test_the_whole_cluster_is_stopped_by_its_name_alone(self):
        name = self.api(1, "state")["name"]
        self.browser.open(self.origin(1), "settings")
        self.browser.click("#stop-all")
        self.browser.wait_for("dialog input")
        self.assertFalse(self.browser.find("dialog button.grave").is_enabled())
        self.browser.type("dialog input", name[:-1])
        self.assertFalse(self.browser.find("dialog button.grave").is_enabled())
        self.browser.type("dialog input", name)
        self.browser.click("dialog button.grave")
        for number, tracker in self.trackers.items():
            wait_until(lambda: tracker.status == 0, 20, lambda: f"tracker {number} has stopped: {tracker.status}")

    def test_the_page_moves_to_the_next_console_when_its_tracker_is_killed(self):
        self.announce(2, bytes(20), 7001)
        self.wait_for_swarms(1, 1)
        self.browser.open(self.origin(1), "swarms?sort=seeders&order=desc")
        self.browser.wait_for_text(".tally", "1 swarm")
        self.trackers[1].kill()
        self.browser.wait_for("#age", 5)
        self.assertIn("The connection is lost", self.browser.text("#age"))
        self.browser.wait_for_text("#moving", "Tracker 1’s console does not answer.", 5)
        wait_until(lambda: self.browser.address.startswith(self.origin(2)), 15, self.browser.told)
        self.browser.wait_for_text(".tally", "1 swarm")
        self.assertIn("#/swarms?sort=seeders&order=desc", self.browser.address)
        self.assertIn(f"127.0.0.1:{self.places[1].console}", self.browser.text("#notices"))
        # Where it came from is forgotten, so that it can go there again.
        wait_until(lambda: "tried=" not in self.browser.address, 20, self.browser.told)
        self.begin_again(1)
        self.trackers[2].kill()
        wait_until(lambda: self.browser.address.startswith(self.origin(3)), 20, self.browser.told)

    def begin_again(self, number):
        self.trackers[number] = self.begin(number)
        wait_until(lambda: (self.cluster(number) or {}).get("isServing"), 30, lambda: self.cluster(number))

    def test_a_lost_connection_is_mended_and_nobody_who_types_is_moved(self):
        self.browser.open(self.origin(1), "settings")
        self.browser.type("#cut input[type=number]", "12")
        self.trackers[1].signal(signal.SIGSTOP)
        try:
            self.browser.wait_for_text("#age", "As of ", 5)
            self.browser.wait_for_text("#moving", "Or go on at another:", 10)
            time.sleep(10)  # Longer than it waits before it moves.
            self.assertTrue(self.browser.address.startswith(self.origin(1)))
        finally:
            self.trackers[1].signal(signal.SIGCONT)
        wait_until(lambda: self.browser.text("#age") is None, 15, self.browser.told)
        self.browser.wait_for_text("#connection", "Live")
        self.assertIsNone(self.browser.text("#moving"))


class Hostile(ConsoleTest):
    """Names that would rather be obeyed than shown."""

    def flags(self):
        torrents = self.directory / "torrents"
        torrents.mkdir(exist_ok=True)
        self.hashes = {}
        for number, name in enumerate(HOSTILE):
            torrent = metainfo.Torrent(number, 1000, name)
            self.hashes[name] = torrent.info_hash.hex()
            (torrents / f"{number}.torrent").write_bytes(torrent.file("http://127.0.0.1/announce"))
        return ["--torrents", torrents]

    def test_names_are_shown_inert(self):
        for info_hash in self.hashes.values():
            self.announce(1, bytes.fromhex(info_hash), 7001)
        self.wait_for_swarms(1, len(HOSTILE))
        for page in ("swarms?sort=name", "torrents"):
            self.browser.open(self.origin(1), page)
            wait_until(lambda: len(self.browser.texts(".big tbody td.name")) == len(HOSTILE), 10, self.browser.told)
            shown = self.browser.texts(".big tbody td.name")
            self.assertIn(HOSTILE[0], shown)
            self.assertIn(HOSTILE[1], shown)
            self.inspect()
        for info_hash in self.hashes.values():
            for kind in ("swarms", "torrents"):
                self.browser.open(self.origin(1), f"{kind}/{info_hash}")
                self.browser.wait_for("#page h1 bdi")
                self.inspect()

    def inspect(self):
        """Nothing of a name became an element, turned the text, or made the page wider than its window."""
        smuggled = "#page img, #page script, #page [onload]"
        self.assertEqual(self.browser.run("return document.querySelectorAll(arguments[0]).length", smuggled), 0)
        self.assertNotRegex(self.browser.run("return document.body.textContent"), "[\u202a-\u202e\u2066-\u2069]")
        self.assertEqual(self.browser.faults_of_page(), [])
        self.assertEqual(self.browser.problems(), [])

    def test_addresses_are_no_scripts(self):
        for page in ("swarms/<img src=x onerror=alert(1)>", "torrents/%22><script>alert(1)</script>", "%3Cb%3E",
                     "swarms?q=<img src=x onerror=alert(1)>&sort=<b>", "timeline?event=<b>&from=x&to=y",
                     "?tried=<b>,javascript:1"):
            self.browser.open(self.origin(1), page)
            self.assertEqual(self.browser.run("return document.querySelectorAll('#page img, #page script').length"), 0)
        self.expected = ("status of 400", "status of 404")

    def test_nothing_comes_from_elsewhere(self):
        for path in ("/", "/console/app.js", "/console/style.css"):
            with urllib.request.urlopen(f"{self.origin(1)}{path}", timeout=30) as reply:
                parts = filter(None, map(str.strip, reply.headers["Content-Security-Policy"].split(";")))
                self.assertEqual(dict(part.split(" ", 1) for part in parts), POLICY, path)
                self.assertEqual(reply.headers["X-Content-Type-Options"], "nosniff", path)
        for page in PAGES:
            self.browser.open(self.origin(1), page)
        names = self.browser.run("return performance.getEntriesByType('resource').map((e) => e.name)")
        self.assertTrue(names)
        self.assertEqual([name for name in names if not name.startswith(f"{self.origin(1)}/")], [])


class Replicated(ConsoleTest):
    """What is put in at one console is at all of them."""

    expected = (*GONE, "status of 401", "status of 403", "status of 404", "status of 412")

    def upload(self, number, torrent):
        path = self.directory / f"{torrent.name}.torrent"
        path.write_bytes(torrent.file("http://127.0.0.1/announce"))
        self.browser.open(self.origin(number), "torrents")
        self.browser.wait_for("#file")
        self.browser.find("#file").send_keys(str(path))
        self.browser.wait_for_text("#notices", f"{torrent.name} is there.", 20)
        return path.read_bytes()

    def test_a_torrent_is_uploaded_here_and_downloaded_there(self):
        torrent = metainfo.Torrent(1, 300_000)
        info_hash = torrent.info_hash.hex()
        content = self.upload(3, torrent)
        self.browser.wait_for_text(".big tbody td.name", torrent.name)
        self.trackers[3].kill()
        self.wait_for_master(2, among=(1, 2))
        self.browser.open(self.origin(1), f"torrents/{info_hash}")
        self.browser.wait_for_text("#page h1", torrent.name)
        self.assertEqual(self.browser.texts("#page tbody td.name"), [torrent.name])
        link = self.browser.run("return document.querySelector('a[download]').href")
        with urllib.request.urlopen(link, timeout=30) as reply:
            self.assertEqual(reply.read(), content)
        self.browser.click_text("Delete …")
        self.browser.click("dialog button.grave")
        wait_until(lambda: self.browser.address.endswith("#/torrents"), 10, self.browser.told)
        wait_until(lambda: self.api(2, "torrents")["total"] == 0, 5, lambda: self.api(2, "torrents"))

    def test_what_is_no_torrent_is_refused_with_a_sentence(self):
        path = self.directory / "no.torrent"
        path.write_bytes(b"<script>alert(1)</script>")
        self.browser.open(self.origin(1), "torrents")
        self.browser.wait_for("#file")
        self.browser.find("#file").send_keys(str(path))
        self.browser.wait_for_text(".notice.bad", "no.torrent: ")
        self.assertEqual(self.api(1, "torrents")["total"], 0)
        self.expected = ("status of 400", "status of 415", "status of 422")

    def add_user(self, name, role):
        self.browser.click("#add-user")
        self.browser.type("dialog input[name=name]", name)
        self.browser.run("document.querySelector('dialog select').value = arguments[0]", role)
        self.browser.type("dialog input[name=password]", PASSWORD)
        self.browser.click("dialog button.primary")
        # Once there is a user, the console may ask who is there.
        def is_there():
            return name in "\n".join(self.browser.texts("#page tbody th")) or self.browser.text(".login") is not None
        wait_until(is_there, 20, self.browser.told)

    def log_in(self, number, name, password=PASSWORD):
        self.browser.open(self.origin(number), "login")
        self.browser.type("input[name=name]", name)
        self.browser.type("input[name=password]", password)
        self.browser.click(".login button")

    def make_own_passkey(self):
        self.browser.go("users")
        self.browser.wait_for_text("#own-passkey", "You have none.")
        self.browser.wait_for_text("#access-mode", "“open”")
        self.browser.click("#renew-passkey")
        self.browser.wait_for_text("#own-passkey", "/announce", 20)
        passkey = self.browser.text("#own-passkey code")
        self.assertRegex(passkey, "^[0-9a-f]{32}$")
        # Another one only after a question, for clients with the old one are not let in any more.
        self.browser.click("#renew-passkey")
        self.browser.wait_for_text("dialog", "Running clients are not let in any more")
        self.browser.click("dialog button.grave")
        wait_until(lambda: passkey not in (self.browser.text("#own-passkey") or passkey), 20, self.browser.told)

    def test_users_log_in_and_may_do_what_their_role_says(self):
        torrent = metainfo.Torrent(2, 1000)
        self.upload(1, torrent)
        self.browser.go("users")
        self.add_user("ada", "admin")
        self.log_in(1, "ada")
        self.browser.wait_for_text("#foot", "ada admin")
        self.browser.go("users")
        self.add_user("vic", "viewer")
        # Of each user the sessions and tokens, which are ended one by one.
        made = self.browser.driver.execute_async_script(
            "const done = arguments[0]; fetch('/api/v1/sessions/tokens', { method: 'POST', headers: "
            "{ 'Content-Type': 'application/json' }, body: JSON.stringify({ label: 'build <b>one</b>' }) })"
            ".then((e) => done(e.status))")
        self.assertEqual(made, 201)
        self.browser.click("[aria-label='Sessions of ada']")
        wait_until(lambda: [row[0] for row in self.browser.rows(".sessions tbody tr")]
                   == ["Log-in this one", "Token build <b>one</b>"], 10, self.browser.told)
        for size, scheme in ((browser.NARROW, "dark"), (browser.WIDE, "light")):
            self.browser.look(size, scheme)
            if place := os.environ.get("SWARMKEEPER_PICTURES"):
                pathlib.Path(place).mkdir(parents=True, exist_ok=True)
                self.browser.picture(pathlib.Path(place) / f"sessions-{size[0]}-{scheme}.png")
            self.assertEqual(self.browser.faults_of_page(), [])
        self.browser.click(".sessions tbody tr:nth-child(2) button")
        self.browser.wait_for_text("dialog", "build <b>one</b>")
        self.browser.click("dialog button.grave")
        wait_until(lambda: [row[0] for row in self.browser.rows(".sessions tbody tr")] == ["Log-in this one"], 10,
                   self.browser.told)
        self.browser.click("[aria-label='Sessions of vic']")
        self.browser.wait_for_text(".sessions", "There are none.")
        # A role that somebody else has changed meanwhile is not changed back unseen.
        changed = self.browser.driver.execute_async_script(
            "const done = arguments[0]; fetch('/api/v1/users/vic', { method: 'PUT', headers: { 'Content-Type': "
            "'application/json' }, body: JSON.stringify({ role: 'uploader' }) }).then((e) => done(e.status))")
        self.assertEqual(changed, 200)
        self.browser.run("const e = document.querySelector(\"[aria-label='Role of vic']\"); e.value = 'admin'; "
                         "e.dispatchEvent(new Event('change'))")
        self.browser.wait_for_text("#notices", "the account has been changed meanwhile")
        wait_until(lambda: self.browser.run(
            "return document.querySelector(\"[aria-label='Role of vic']\").value") == "uploader", 10, self.browser.told)
        self.browser.click("#notices button")
        self.browser.run("const e = document.querySelector(\"[aria-label='Role of vic']\"); e.value = 'viewer'; "
                         "e.dispatchEvent(new Event('change'))")
        self.browser.wait_for_text("#notices", "The role is changed.")
        self.log_in(2, "vic", "a wrong one")
        self.browser.wait_for(".login .problem")
        self.log_in(2, "vic")
        self.browser.wait_for_text("#foot", "vic viewer", 20)
        self.make_own_passkey()
        self.browser.go(f"torrents/{torrent.info_hash.hex()}")
        self.browser.wait_for_text("#page h1", torrent.name)
        self.assertNotIn("Delete …", self.browser.texts("#page button"))
        status = self.browser.driver.execute_async_script(
            "const done = arguments[1]; fetch(arguments[0], { method: 'DELETE' }).then((e) => done(e.status))",
            f"/api/v1/torrents/{torrent.info_hash.hex()}")
        self.assertEqual(status, 403)
        self.browser.go("settings")
        self.browser.wait_for("#cut")
        self.assertIsNone(self.browser.text("#do-cut"))
        self.browser.click_text("Log out")
        self.browser.wait_for_text("body", "Log in", 10)
