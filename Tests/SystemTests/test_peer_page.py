"""The page of `tracker peer` in a real browser, over real peers and a real tracker: what it shows is what the API says, and
what is on the disk.

Pictures of each page, light and dark, wide and narrow, are kept in the directory that SWARMKEEPER_PICTURES names:

    SWARMKEEPER_PICTURES=/tmp/pictures /usr/bin/python3 Tests/SystemTests/run.py -k test_peer_page
"""

import http.client
import json
import os
import pathlib
import time
import urllib.parse

import browser
import serving
from consoles import Console
from metainfo import Torrent
from peers import PeerTest
from serving import require_tracker, wait_until

MIB = 1 << 20
SLOW = 512 << 10
"""Bytes a second, as a limit: a transfer lasts long enough for something to happen in it."""
HOSTILE = ("<img src=x onerror=alert(1)>.iso", "invoice\u202efdp.exe", "A" * 200, "'\"><svg onload=alert(3)>", "שלום עולם.mkv")
SECRET = "0123456789abcdef" * 2
GONE = ("ERR_CONNECTION_REFUSED", "ERR_CONNECTION_RESET", "ERR_INCOMPLETE_CHUNKED_ENCODING", "ERR_EMPTY_RESPONSE")
"""What the browser says of a peer that was killed."""


def setUpModule():
    require_tracker()
    if lacks := browser.missing():
        raise AssertionError("\n  ".join(["the system tests miss", *lacks]))


class Host(Console):
    """A `tracker peer`, which may be started again in its folder and at its ports."""

    def __init__(self, folder, flags, **options):
        super().__init__(serving.free_port(), **options)
        self.folder, self.flags, self.peer_port, self.program = folder, flags, serving.free_port(), None

    @property
    def origin(self):
        return f"http://127.0.0.1:{self.port}"

    @property
    def address(self):
        return f"127.0.0.1:{self.peer_port}"

    def answers(self):
        try:
            return self.get("").status in (200, 401)
        except (OSError, http.client.HTTPException):
            return False

    def transfer(self, torrent_hash):
        return self.get(f"transfers/{torrent_hash}").json


class PeerPageTest(PeerTest):
    expected = ()
    """Complaints of the browser that a test provokes."""

    def setUp(self):
        self.browser = self.stack.enter_context(browser.Browser(self.directory))

    def tearDown(self):
        self.assertEqual(self.browser.problems(self.expected), [])

    def host(self, name, *flags, **options):
        host = Host(self.folder(name), flags, **options)
        self.begin(host)
        return host

    def begin(self, host):
        host.program = self.program("peer", "--path", host.folder, "--console", f"127.0.0.1:{host.port}", "--listen",
                                    host.address, *host.flags)

        def answers():
            self.assert_runs(host.program)
            return host.answers()
        wait_until(answers, 20, lambda: f"it answers: {host.program.words}")

    def add(self, host, torrent, query=""):
        answer = host.ask("POST", f"transfers{query}", torrent.file(""))
        self.assertEqual(answer.status, 201, answer)
        return answer.json["hash"]

    def wait_for_state(self, host, torrent_hash, *states, seconds=30):
        wait_until(lambda: host.transfer(torrent_hash)["state"] in states, seconds,
                   lambda: f"{states}: {host.transfer(torrent_hash)}; {self.browser.told()}")

    def names(self):
        """Those that the list shows, in its order."""
        return self.browser.texts(".big tbody td.name > a")

    def downloaded(self):
        """The torrent file that the browser has saved: it keeps the name by an empty file until it has the bytes."""
        def found():
            names = (self.directory / "Downloads").glob("*.torrent")
            return next((name for name in names if name.stat().st_size), None)
        return wait_until(found, 10, "a torrent file is downloaded")

    def picture(self, name):
        if place := os.environ.get("SWARMKEEPER_PICTURES"):
            pathlib.Path(place).mkdir(parents=True, exist_ok=True)
            self.browser.picture(pathlib.Path(place) / f"peer-{name}.png")

    def judge(self, name):
        """The page as it is now, light and dark, wide and narrow: named, labelled, legible, not wider than the window."""
        for size in (browser.WIDE, browser.NARROW):
            for scheme in ("light", "dark"):
                with self.subTest(page=name, size=size, scheme=scheme):
                    self.browser.look(size, scheme)
                    time.sleep(0.5)  # For the drawings, which follow the size.
                    self.picture(f"{name}-{size[0]}-{scheme}")
                    self.assertEqual(self.browser.faults_of_page(), [])
        self.browser.look(browser.WIDE, "light")


class FromOneToTheOther(PeerPageTest):

    def setUp(self):
        super().setUp()
        self.tracker = self.serve()
        self.announce = f"udp://127.0.0.1:{self.tracker.place.udp}/announce"

    def data(self, folder):
        """A folder to share; its files and their bytes."""
        files = {f"photos/{number}.raw": os.urandom(number * MIB + 12_345) for number in range(1, 5)}
        for name, content in files.items():
            path = folder / "data set" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        return files

    def create(self, host):
        """Has the page make, publish and seed it; what the API says of it then."""
        self.browser.open(host.origin, "create")
        self.browser.click("button[aria-label='Share data set']")
        self.browser.wait_for_text("#create-what", "Shares data set")
        self.assertIn("share=data", self.browser.address)
        # What makes no sense is told beside the field, and nothing is made.
        self.browser.type("#create-trackers", "udp://127.0.0.1:1/announce\ntracker.example")
        self.browser.click("#create-go")
        self.browser.wait_for_text("#create-trackers-problem", "Line 2")
        self.assertEqual(host.get("creations").json["creations"], [])
        self.browser.type("#create-trackers", self.announce)
        self.browser.type("#create-seeds", "http://127.0.0.1:9/mirror/")
        self.browser.click("#create-publish")
        self.browser.type("#create-console", f"http://127.0.0.1:{self.tracker.place.console}")
        self.picture("create-filled")
        self.browser.click("#create-go")
        self.browser.wait_for(".creations li[data-state=done]", 40)
        return host.get("creations").json["creations"][0]

    def test_a_folder_is_made_a_torrent_published_seeded_and_fetched_elsewhere(self):
        self.expected = ("folders?path=from",)  # It is not there before something is put into it.
        one, other = self.host("one"), self.host("other", "--max-down", "1M")
        files = self.data(one.folder)
        made = self.create(one)
        self.browser.wait_for_text(".creations li", f"Published at http://127.0.0.1:{self.tracker.place.console}")
        known = Console(self.tracker.place.console).get(f"torrents/{made['hash']}").json
        self.assertEqual((known["name"], known["hasFile"]), ("data set", True))
        self.judge("created")
        # The file that the page gives is the one that was published.
        self.browser.click_text(".torrent file", ".creations")
        file = self.downloaded()
        self.assertEqual(file.name, "data set.torrent")
        published = Console(self.tracker.place.console).get(f"torrents/{made['hash']}/file").content
        self.assertEqual(file.read_bytes(), published)
        self.browser.click_text("Its transfer", ".creations")
        self.browser.wait_for_text(".state-text", "Seeding", 20)
        self.assertIn(f"#/transfers/{made['hash']}", self.browser.address)
        self.browser.click("[data-part=trackers]")
        self.browser.wait_for_text("table.trackers", "Answered last", 20)
        self.assertIn(self.announce, self.browser.text("table.trackers"))
        self.judge("trackers")

        # At the other one, with that file.
        self.browser.open(other.origin, "transfers")
        self.browser.wait_for_text(".empty", "Nothing is transferred yet")
        self.judge("empty")
        self.browser.click("#add")
        self.browser.wait_for("#add-files")
        self.browser.find("#add-files").send_keys(str(file))
        self.browser.wait_for_text(".chosen-files", "data set.torrent")
        self.browser.type("#add-directory", "from/one")
        self.judge("add")
        self.browser.click("dialog button.primary")
        self.browser.wait_for_text(".big tbody td.name > a", "data set")
        self.browser.wait_for_text(".big tbody .says", "Downloading", 30)
        self.browser.click(".big tbody td.name a")
        self.browser.wait_for_text(".state-text", "Downloading from 1", 30)
        shares = set()

        def is_whole():
            shares.add(self.browser.text(".far b"))
            return "Seeding" in (self.browser.text(".state-text") or "")
        wait_until(is_whole, 60, self.browser.told)
        self.assertGreater(len(shares), 2, f"the progress was not to be seen: {shares}")
        for name, content in files.items():
            self.assertEqual((other.folder / "from/one/data set" / name).read_bytes(), content)
        self.browser.wait_for_text(".pieces-card .heading", "verified")
        self.assertRegex(self.browser.find("canvas.pieces").get_attribute("aria-label"), r"^(\d+) of \1 pieces of .* verified$")
        self.judge("whole")
        self.browser.click("[data-part=files]")
        rows = wait_until(lambda: self.browser.rows("table.files tbody tr"), 10, self.browser.told)
        self.assertEqual([(row[1], row[3]) for row in rows], [(f"data set/{name}", "100 %") for name in sorted(files)])
        self.judge("files")

    def test_a_magnet_link_is_added_with_the_keyboard_alone(self):
        from selenium.webdriver.common.keys import Keys
        torrent = Torrent(self.id(), 3 * MIB, is_private=False)
        self.seed(torrent, trackers=("--announce", self.announce), source=self.torrent_file(torrent, self.announce))
        host = self.host("other")
        self.browser.open(host.origin)
        self.browser.wait_for(".empty")
        self.browser.press("a")
        self.browser.wait_for("#add-links")
        self.assertEqual(self.browser.run("return document.activeElement.id"), "add-links")
        self.browser.press(torrent.magnet(self.announce))
        for wanted in ("add-files", "add-directory", "add-paused"):
            self.browser.press(Keys.TAB)
            self.assertEqual(self.browser.run("return document.activeElement.id"), wanted)
        self.browser.press(Keys.TAB, Keys.TAB)
        self.assertEqual(self.browser.run("return document.activeElement.innerText"), "Add")
        self.browser.press(Keys.ENTER)
        wait_until(lambda: self.browser.text("dialog") is None, 10, self.browser.told)
        wait_until(lambda: self.names() == [torrent.name], 40, self.browser.told)
        self.browser.wait_for_text(".big tbody .says", "Seeding", 40)
        self.assertEqual(torrent.sha256_in(host.folder), torrent.sha256)
        # From the row to its page, and back.
        self.browser.run("document.querySelector('.big tbody td.name a').focus()")
        self.browser.press("x")
        self.browser.wait_for_text(".chosen-bar b", "1 chosen")
        self.browser.press(Keys.ENTER)
        self.browser.wait_for_text("h1.title", torrent.name)
        self.assertEqual(self.browser.run("return document.activeElement.tagName"), "H1")
        self.browser.press("2")
        wait_until(lambda: "#/create" in self.browser.address, 5, self.browser.told)
        # The same link again changes nothing, and says so; nonsense stays in the question, with why.
        self.browser.press("a")
        self.browser.wait_for("#add-links")
        self.browser.press(f"nonsense {torrent.magnet()}")
        self.browser.click("dialog button.primary")
        self.browser.wait_for_text("dialog .problem", "is no magnet link")
        self.assertEqual(self.browser.find("#add-links").get_attribute("value"), "nonsense")
        self.assertIn("was there already", self.browser.run("return document.querySelector('#notices').textContent"))
        self.assertEqual(len(host.get("transfers").json["transfers"]), 1)


class WhatIsDone(PeerPageTest):
    expected = GONE

    def test_paused_killed_resumed_rechecked_and_removed(self):
        torrent = Torrent(self.id(), files={("one",): 3 * MIB + 17, ("in", "two"): 2 * MIB, ("in", "three"): 5 * MIB})
        seeder, host = self.seed(torrent, "--max-up", SLOW), self.host("peer")
        info_hash = self.add(host, torrent)
        self.browser.open(host.origin, f"transfers/{info_hash}")
        self.browser.wait_for_text(".state-text", "Waiting for peers", 20)
        self.browser.click_text("Add a peer …")
        self.browser.type("dialog input[name=address]", f"127.0.0.1:{seeder.port}")
        self.browser.click("dialog button.primary")
        self.browser.wait_for_text(".state-text", "Downloading from 1", 20)
        wait_until(lambda: host.transfer(info_hash)["progress"] > 0.1, 30, "some of it has come")
        self.browser.click("[data-part=peers]")
        self.browser.wait_for_text("table.peers", f"127.0.0.1:{seeder.port}")
        self.browser.wait_for_text("table.peers", "sends to us")
        self.judge("peers")
        # A file is left out, and wanted again.
        self.browser.click("[data-part=files]")
        self.browser.click("input[aria-label$='in/two']")
        wait_until(lambda: [one["isWanted"] for one in host.transfer(info_hash)["files"]].count(False) == 1, 10,
                   lambda: host.transfer(info_hash)["files"])
        self.browser.wait_for_text(".part .toolbar", "2 of 3 files wanted")
        time.sleep(2)  # So long does the page trust the click rather than the peer.
        self.assertIn("2 of 3 files wanted", self.browser.text(".part .toolbar"))
        self.browser.click_text("Want none")
        self.browser.wait_for_text(".part .toolbar", "None is wanted")
        self.browser.click("input[aria-label$='in/three']")
        wait_until(lambda: [one["isWanted"] for one in host.transfer(info_hash)["files"]] == [False, False, True], 10,
                   lambda: host.transfer(info_hash)["files"])
        self.browser.click_text("Want all")
        wait_until(lambda: all(one["isWanted"] for one in host.transfer(info_hash)["files"]), 10, self.browser.told)

        self.browser.click("#run")
        self.browser.wait_for_text(".state-text", "Paused", 10)
        self.assertEqual(host.transfer(info_hash)["state"], "paused")
        before = host.transfer(info_hash)["progress"]
        self.assertGreater(before, 0.1)
        self.assertLess(before, 1, "it was whole before it was paused: there was no middle")

        # The peer dies, and the page says so; it comes again, and the page mends itself.
        host.program.kill()
        self.browser.wait_for_text("#age", "The connection is lost", 15)
        self.assertTrue(self.browser.driver.title.startswith("✕"), self.browser.driver.title)
        self.picture("lost")
        self.begin(host)
        self.browser.wait_for_text("#connection", "Live", 20)
        wait_until(lambda: self.browser.text("#age") is None, 5, self.browser.told)
        self.browser.wait_for_text(".state-text", "Paused", 10)
        wait_until(lambda: host.transfer(info_hash)["progress"] > 0, 10, lambda: host.transfer(info_hash))

        self.browser.click("#run")
        self.browser.wait_for_text("#run", "Pause")
        self.browser.click_text("Add a peer …")
        self.browser.type("dialog input[name=address]", f"127.0.0.1:{seeder.port}")
        self.browser.click("dialog button.primary")
        self.browser.wait_for_text(".state-text", "Seeding", 60)
        self.assertEqual(torrent.sha256_in(host.folder), torrent.sha256)

        # A byte goes wrong on the disk: only a check finds it.
        seeder.kill()
        path = host.folder / torrent.name / "one"
        content = path.read_bytes()
        path.write_bytes(bytes([content[0] ^ 1]) + content[1:])
        self.browser.click_text("Recheck")
        wait_until(lambda: host.transfer(info_hash)["missing"] == torrent.piece_length, 20, lambda: host.transfer(info_hash))
        wait_until(lambda: self.browser.text(".far b") not in ("100 %", None), 10, self.browser.told)

        # What is deleted is told before, and nothing beside it goes.
        (host.folder / torrent.name / "mine").write_text("not of the torrent")
        self.browser.click("#remove")
        self.browser.wait_for("dialog")
        self.assertIsNone(self.browser.text("dialog .doomed"))
        self.assertEqual(self.browser.text("dialog button.grave"), "Remove, keep the files")
        self.browser.click("dialog input[value=true]")
        self.browser.wait_for_text("dialog .doomed", "These 3 files are deleted in")
        told = self.browser.text("dialog .doomed")
        for name in (str(host.folder), f"{torrent.name}/one", f"{torrent.name}/in/two", f"{torrent.name}/in/three"):
            self.assertIn(name, told)
        self.judge("remove")
        self.browser.click("dialog button.grave")
        self.browser.wait_for_text(".empty", "Nothing is transferred yet")
        wait_until(lambda: not path.exists() and not (host.folder / torrent.name / "in").exists(), 10, "its files go")
        self.assertEqual((host.folder / torrent.name / "mine").read_text(), "not of the torrent")
        self.assertEqual(host.get("transfers").json["transfers"], [])

    def test_many_are_filtered_sorted_chosen_and_removed(self):
        host = self.host("peer")
        torrents = {}
        for number in range(1, 41):
            torrent = Torrent(f"{self.id()} {number}", 20_000, name=f"number {number}")
            torrents[torrent.name] = torrent
            if number % 4 == 0:
                torrent.write(host.folder)
            self.add(host, torrent, "?paused=true" if number % 4 == 1 else "")
        for name in HOSTILE:
            torrents[name] = Torrent(name, 20_000, name=name)
            self.add(host, torrents[name], "?paused=true")
        self.browser.open(host.origin, "transfers?sort=name")
        self.browser.wait_for_text(".tally", "45 transfers", 20)
        self.browser.type(".search", "number")
        self.browser.wait_for_text(".tally", "40 transfers")
        shown = self.names()
        self.assertEqual(shown, [f"number {number}" for number in range(1, len(shown) + 1)])
        self.assertIn("q=number", self.browser.address)
        self.browser.click_text("Name ↑", ".big")
        wait_until(lambda: self.names()[:2] == ["number 40", "number 39"], 10, self.browser.told)
        self.assertIn("order=desc", self.browser.address)
        # What the address says is shown by whoever opens it.
        address = self.browser.address.split("#/")[1]
        self.browser.open(host.origin, address)
        wait_until(lambda: self.names()[:2] == ["number 40", "number 39"], 10, self.browser.told)
        self.browser.click_text("Seeding 10", ".choice")
        wait_until(lambda: self.browser.text(".tally") == "10 transfers", 20, self.browser.told)
        self.assertEqual(self.names(), [f"number {number}" for number in range(40, 0, -4)])
        # Several are chosen, and paused together.
        self.browser.click("thead input[type=checkbox]")
        self.browser.wait_for_text(".chosen-bar b", "10 chosen")
        self.picture("chosen")
        self.browser.click_text("Pause", ".chosen-bar")
        wait_until(lambda: [one["state"] for one in host.get("transfers").json["transfers"]].count("seeding") == 0, 20,
                   lambda: host.get("transfers").json)
        self.browser.wait_for_text(".tally", "No transfer is like that.", 10)
        self.assertEqual(self.browser.text(".chosen-bar b"), "10 chosen", "those that are chosen stay so")
        self.browser.click_text("Remove …", ".chosen-bar")
        self.browser.wait_for_text("dialog h2", "Remove 10 transfers?")
        self.browser.click("dialog button.grave")
        wait_until(lambda: len(host.get("transfers").json["transfers"]) == 35, 20, lambda: host.get("transfers").json)
        self.assertEqual(torrents["number 40"].sha256_in(host.folder), torrents["number 40"].sha256, "the files stay")
        # Names that would do harm are shown, not obeyed.
        self.browser.open(host.origin, "transfers?state=paused&sort=name")
        wait_until(lambda: HOSTILE[0] in self.names(), 10, self.browser.told)
        self.assertIn("שלום עולם.mkv", self.names())
        self.assertNotIn("\u202e", "".join(self.names()), "a name turns the writing direction")
        self.judge("transfers")
        self.browser.open(host.origin, f"transfers/{torrents[HOSTILE[0]].info_hash.hex()}")
        self.browser.wait_for_text("h1", HOSTILE[0])
        self.judge("hostile")


class WhoMay(PeerPageTest):

    def test_limits_are_kept_and_nonsense_is_told(self):
        self.expected = ("status of 400",)
        torrent = Torrent(self.id(), 50_000)
        host = self.host("peer", "--max-up", "3M")
        info_hash = self.add(host, torrent, "?paused=true")
        self.browser.open(host.origin, "settings")
        self.browser.wait_for_text(".pairs", str(host.folder))
        self.assertIn(host.address, self.browser.text(".pairs"))
        self.assertEqual(self.browser.find("#limit-up").get_attribute("value"), "3")
        self.browser.type("#limit-down", "500")
        self.browser.click_text("Save")
        wait_until(lambda: host.get("settings").json["maxDown"] == 500 << 10, 10, lambda: host.get("settings").json)
        self.assertEqual(host.get("settings").json["maxUp"], 3 << 20)
        self.judge("settings")
        self.browser.go(f"transfers/{info_hash}?show=limits")
        self.browser.type("#limit-ratio", "1.5")
        self.browser.type("#limit-peers", "7")
        self.browser.click_text("Save")
        wanted = {"maxDown": None, "maxUp": None, "maxPeers": 7, "ratio": 1.5}
        wait_until(lambda: host.transfer(info_hash)["limits"] == wanted, 10, lambda: host.transfer(info_hash))
        self.judge("limits")
        self.browser.type("#limit-peers", "100000")
        self.browser.click_text("Save")
        self.browser.wait_for(".notice.bad")
        self.assertEqual(host.transfer(info_hash)["limits"], wanted)

    def test_a_token_is_asked_for_where_there_is_one(self):
        self.expected = ("status of 401",)
        file = self.directory / "token"
        file.write_text(f"{SECRET}\n")
        file.chmod(0o600)
        torrent = Torrent(self.id(), 50_000, name="for who may")
        host = self.host("peer", "--console-token-file", file, token=SECRET)
        info_hash = self.add(host, torrent, "?paused=true")
        self.browser.open(host.origin, f"transfers/{info_hash}")
        self.browser.wait_for_text("h1", "Who is there?")
        self.judge("token")
        self.browser.type("#token", "a guess")
        self.browser.click_text("Go on")
        self.browser.wait_for_text(".problem", "does not know this token")
        self.browser.type("#token", SECRET)
        self.browser.click_text("Go on")
        self.browser.wait_for_text("h1", "for who may")
        # A file comes, though a link shows no token; and the tab keeps it.
        self.browser.click_text(".torrent file")
        self.assertEqual(self.downloaded().read_bytes(), torrent.file(""))
        self.browser.driver.refresh()
        self.browser.wait_for_text("h1", "for who may")

    def test_pages_of_others_bring_nothing_in(self):
        """A magnet link of another page is asked about, not added; the pages let nothing in from elsewhere."""
        host = self.host("peer")
        link = Torrent(self.id(), 50_000).magnet()
        self.browser.open(host.origin, f"transfers?magnet={urllib.parse.quote(link, safe='')}")
        self.browser.wait_for("#add-links")
        self.assertEqual(self.browser.find("#add-links").get_attribute("value"), link)
        self.assertNotIn("magnet=", self.browser.address)
        self.assertEqual(host.get("transfers").json["transfers"], [])
        answer = host.ask("GET", "/")
        self.assertIn("default-src 'none'", answer.headers["Content-Security-Policy"])
        for part in ("peer/peer.js", "peer/peer.css", "console/dom.js"):
            self.assertEqual(host.ask("GET", f"/{part}").status, 200, part)
        body = {"magnet": link}
        for headers in ({"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "cross-site"}, {"Host": "evil.example"}):
            with self.subTest(headers=headers):
                self.assertEqual(host.ask("POST", "transfers", body, headers).status, 403)
        self.assertEqual(json.loads(host.get("transfers").content)["transfers"], [])
