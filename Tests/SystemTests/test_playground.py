"""The playground in a real browser, as a folder of static files: stories, steps, messages, what-ifs and their branches, the
person as the network, sweeps, the explorer's walk, links that another browser opens, and what a link does that is wrong.

Pictures, light and dark, wide and narrow, are kept in the directory that SWARMKEEPER_PICTURES names:

    SWARMKEEPER_PICTURES=/tmp/pictures /usr/bin/python3 Tests/SystemTests/run.py -k test_playground

The module has to be there: `make wasm`.
"""

import json
import os
import pathlib
import re
import shlex
import subprocess
import time
import unittest
import urllib.parse

import browser
from playgrounds import MODULE, PLANTED, StaticFolder, require_playground
from serving import TrackerTest, wait_until

TRANSCRIPTS = pathlib.Path(__file__).resolve().parents[1] / "SimulationTests" / "Transcripts"
RUN = "seed=7&profile=paxos"
LONG_RUN = "seed=3&profile=paxos&nodes=7&seconds=36"
"""Seven trackers, and some 13,000 steps in more than 60 s."""
CANVASES = ".sim-diagram[data-run=main] canvas"
FRAME = 0.050
"""Seconds of a processor that a frame may take."""


def setUpModule():
    require_playground()


class PlaygroundTest(TrackerTest):
    expected = ()
    """Complaints of the browser that a test provokes."""
    module = MODULE

    def setUp(self):
        self.folder = self.stack.enter_context(StaticFolder(self.module))
        self.browser = self.stack.enter_context(browser.Browser(self.directory))

    def tearDown(self):
        self.assertEqual(self.browser.problems(self.expected), [])

    # Where it is

    def open(self, words="", path="sim", window=None):
        """Opens a run and waits until it is there."""
        window = window or self.browser
        window.driver.get("about:blank")
        window.driver.get(f"{self.folder.origin}/#{path}{f'?{words}' if words else ''}")
        if path == "sim":
            window.wait_for(".sim-verdict b", 60)
        else:
            window.wait_for("#page h1", 60)

    def query(self, window=None):
        return dict(urllib.parse.parse_qsl((window or self.browser).address.split("?", 1)[-1]))

    def step(self, window=None):
        found = re.match(r"Step ([\d,]+)", (window or self.browser).text(".sim-step h2") or "")
        return int(found[1].replace(",", "")) if found else 0

    def steps(self):
        return int(re.search(r"of ([\d,]+)", self.browser.text(".sim-step .heading"))[1].replace(",", ""))

    def hash(self, window=None):
        return (window or self.browser).text(".sim-verdict code")

    def settled(self, window=None):
        """The address, once it has followed what is seen."""
        window = window or self.browser
        time.sleep(0.6)
        wait_until(lambda: "v=" in window.address, 10, window.told)
        return window.address

    def pictures(self, window=None):
        """What is on the diagram's canvases."""
        return (window or self.browser).run(
            "return [...document.querySelectorAll(arguments[0])].map((one) => one.toDataURL())", CANVASES)

    def wait_for_run(self, change):
        """Does something, and waits until another run is shown; its hash."""
        before = self.hash()
        change()
        wait_until(lambda: self.hash() not in (None, before) and not self.browser.text(".sim-opening"), 60,
                   self.browser.told)
        return self.hash()

    def point_at_message(self):
        """Moves the pointer over the diagram until it is at a message; where that is, from the middle of the diagram."""
        from selenium.webdriver.common.action_chains import ActionChains
        canvas = self.browser.find(".sim-diagram[data-run=main] .sim-now")
        wide, tall = canvas.size["width"], canvas.size["height"]
        for y in range(-tall // 2 + 60, tall // 2 - 50, 23):
            for x in range(-wide // 2 + 150, wide // 2 - 20, 9):
                ActionChains(self.browser.driver, duration=0).move_to_element_with_offset(canvas, x, y).perform()
                if " after " in (self.browser.text(".sim-diagram[data-run=main] .tip") or ""):
                    return canvas, x, y
        raise AssertionError("no message is under the pointer anywhere")

    def picture(self, name):
        if place := os.environ.get("SWARMKEEPER_PICTURES"):
            pathlib.Path(place).mkdir(parents=True, exist_ok=True)
            self.browser.picture(pathlib.Path(place) / f"playground-{name}.png")

    def judge(self, name):
        """The page as it is now, light and dark, wide and narrow: named, labelled, legible, not wider than the window."""
        for size in (browser.WIDE, browser.NARROW):
            for scheme in ("light", "dark"):
                with self.subTest(page=name, size=size, scheme=scheme):
                    self.browser.look(size, scheme)
                    time.sleep(0.7)  # For the drawings, which follow the size.
                    self.picture(f"{name}-{size[0]}-{scheme}")
                    self.assertEqual(self.browser.faults_of_page(), [])
        self.browser.look(browser.WIDE, "light")


class Walks(PlaygroundTest):

    def test_a_story_is_told_step_by_step(self):
        self.open("story=master-dies")
        self.browser.wait_for(".sim-story")
        sentences = [self.browser.text(".sim-sentence")]
        self.browser.press("0")
        while self.browser.find("#story-next").is_enabled():
            step = self.step()
            self.browser.click("#story-next")
            wait_until(lambda: self.browser.text(".sim-sentence") != sentences[-1], 10, self.browser.told)
            sentences.append(self.browser.text(".sim-sentence"))
            self.assertGreaterEqual(self.step(), step)
            self.assertLess(len(sentences), 100)
        self.assertGreater(len(set(sentences)), 3)
        self.browser.click("#story-back")
        wait_until(lambda: self.browser.text(".sim-sentence") == sentences[-2], 10, self.browser.told)

    def test_every_story_can_be_opened(self):
        self.open("story=master-dies")
        names = self.browser.run("return [...document.querySelector('[name=story]').options].map((one) => one.value)")
        # All that are written down, and none.
        self.assertEqual(len(names), 1 + len(list(TRANSCRIPTS.glob("*.txt"))))
        for name in names[1:]:
            with self.subTest(story=name):
                self.open(f"story={name}")
                self.assertEqual(self.query().get("story"), name)
                self.assertEqual(self.browser.text(".sim-verdict b"), "All promises hold.")
                self.assertTrue(self.browser.text(".sim-sentence"))

    def test_a_message_is_lost_and_the_branch_is_opened_by_another_browser(self):
        self.open("story=master-dies")
        origin = self.hash()
        self.scrub(0.30)
        self.browser.click("[aria-label='A step on']")
        step = self.step()
        self.browser.click("[aria-label='A step back']")
        wait_until(lambda: self.step() == step - 1, 5, self.browser.told)
        self.browser.click("[aria-label='Closer']")
        canvas, x, y = self.point_at_message()
        told = self.browser.text(".sim-diagram[data-run=main] .tip")
        from selenium.webdriver.common.action_chains import ActionChains
        ActionChains(self.browser.driver, duration=0).move_to_element_with_offset(canvas, x, y).click().perform()
        self.browser.wait_for(".sim-message h2")
        self.assertEqual(told.split()[0], self.browser.text(".sim-message h2"))
        wait_until(lambda: len(self.browser.text(".sim-content") or "") > 3, 10, self.browser.told)
        self.judge("message")
        branch = self.wait_for_run(lambda: self.browser.click("#lose"))
        self.assertNotEqual(branch, origin)
        self.browser.wait_for(".sim-diagram[data-run=beside]")
        self.assertIn("part at step", self.browser.text(".sim-branches"))
        self.assertRegex(self.query()["if"] if "if" in self.query() else self.settled(), r"\d+\.drop\.\d+")
        self.judge("branch")
        self.see_the_same_elsewhere(branch)
        self.assertEqual(self.wait_for_run(lambda: self.browser.click("#undo")), origin)

    def see_the_same_elsewhere(self, run_hash):
        address = self.settled()
        with browser.Browser(self.directory / "other") as other:
            other.driver.get(address)
            other.wait_for(".sim-verdict b", 60)
            self.assertEqual((self.hash(other), self.step(other)), (run_hash, self.step()))
            wait_until(lambda: self.pictures(other) == self.pictures(), 10,
                       lambda: f"the same picture in {other.told()}")
            self.assertIsNone(other.text(".sim-other"))
            self.assertEqual(other.address, address)
            self.assertEqual(other.problems(), [])

    def scrub(self, share):
        """Drags along the strip of time."""
        from selenium.webdriver.common.action_chains import ActionChains
        strip = self.browser.find(".sim-scrubber .sim-now")
        wide = strip.size["width"]
        before = self.step()
        chain = ActionChains(self.browser.driver, duration=0).move_to_element_with_offset(strip, -wide // 2 + 12, 0)
        chain.click_and_hold()
        for part in range(1, 11):
            chain.move_to_element_with_offset(strip, int(-wide / 2 + wide * share * part / 10), 0)
        chain.release().perform()
        wait_until(lambda: self.step() not in (0, before), 5, self.browser.told)

    def test_trackers_show_what_the_step_has_changed(self):
        self.open(LONG_RUN)
        self.browser.press("e")
        wait_until(lambda: self.browser.text(".sim-items .is-new"), 10, self.browser.told)
        self.assertTrue(self.browser.texts(".sim-standing"))
        before = self.step()
        self.browser.click("#jump-next")
        wait_until(lambda: self.step() > before, 5, self.browser.told)
        for what in ("commit", "votes", "faults"):
            before = self.step()
            self.browser.run("const e = document.querySelector('[aria-label=\"What is looked for\"]');"
                             "e.value = arguments[0]; e.dispatchEvent(new Event('change'))", what)
            self.browser.click("#jump-next")
            wait_until(lambda: self.step() > before, 5, self.browser.told)

    def test_the_list_says_the_same_as_the_diagram(self):
        self.open(RUN)
        self.browser.press("l")
        self.browser.wait_for(".sim-table tbody td")
        count = self.steps()
        self.assertEqual(self.browser.run("return document.querySelector('.sim-table').ariaRowCount"), str(count + 1))
        self.assertLess(self.browser.run("return document.querySelectorAll('.sim-table tbody tr').length"), 100)
        self.assertEqual(self.browser.text(".sim-table tr.current td"), str(self.step()))
        self.browser.click(".sim-table tr.current + tr .link")
        wait_until(lambda: self.browser.text(".sim-table tr.current td") == str(self.step()), 5, self.browser.told)
        self.browser.type("[data-search]", "becomes master")
        self.browser.wait_for_text(".sim-search [role=status]", "found")
        found = int(self.browser.text(".sim-search [role=status]").split()[0])
        wait_until(lambda: self.browser.text(".sim-list [role=status]") == f"{found} step{'s' * (found != 1)}", 5, self.browser.told)
        wait_until(lambda: all("becomes master" in row[-1] for row in self.browser.rows(".sim-table tr:has(td.c3)")), 5,
                   self.browser.told)
        self.judge("list")

    def test_the_keyboard_alone_will_do(self):
        from selenium.webdriver.common.keys import Keys
        self.open("story=master-dies")
        origin = self.hash()
        self.browser.press(Keys.HOME)
        wait_until(lambda: self.step() == 0, 5, self.browser.told)
        self.browser.press(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ARROW_LEFT)
        wait_until(lambda: self.step() == 1, 5, self.browser.told)
        self.browser.press("j")
        wait_until(lambda: self.step() > 1, 5, self.browser.told)
        self.browser.press("e")
        before = self.step()
        self.browser.press("c")
        wait_until(lambda: self.step() > before, 5, self.browser.told)
        for _ in range(60):
            self.browser.press("m")
            if self.browser.text(".sim-message h2"):
                break
            self.browser.press(Keys.ARROW_RIGHT)
        self.browser.wait_for(".sim-message h2")
        self.wait_for_run(lambda: self.browser.press("x"))
        self.assertEqual(self.wait_for_run(lambda: self.browser.press("u")), origin)
        self.browser.press("?")
        self.browser.wait_for(".keys")
        keys = self.browser.text(".keys")
        for key in ("← →", "Space", "E V C B", "U", "/"):
            for one in key.split():
                self.assertIn(one, keys)
        self.browser.press(Keys.ESCAPE)
        self.browser.press(" ")
        before = self.step()
        wait_until(lambda: self.step() > before + 2, 10, self.browser.told)
        self.browser.press(" ")
        self.browser.press("2")
        self.browser.wait_for("#sweep")
        self.browser.press("1")
        self.browser.wait_for(".sim-verdict b")


class WhatIfs(PlaygroundTest):

    def test_a_tracker_dies_and_the_same_link_gives_the_same_run_again(self):
        self.open(RUN)
        self.browser.press("c")
        branch = self.wait_for_run(lambda: self.browser.click("#act"))
        self.assertRegex(self.settled(), r"if=\d+\.kill\.\d\.5000")
        address = self.settled()
        self.browser.driver.get("about:blank")
        self.browser.driver.get(address)
        self.browser.wait_for(".sim-verdict b", 60)
        self.assertEqual(self.hash(), branch)
        self.assertIsNone(self.browser.text(".sim-other"))
        self.compare_natively(branch)

    def compare_natively(self, run_hash):
        """The command of the export gives the same hash."""
        self.browser.click(".sim-export summary")
        words = shlex.split(self.browser.text(".sim-export .sim-command"))
        self.assertEqual(words[0], "tracker")
        program = self.run_program(*words[1:], "--json", within=60)
        self.assertEqual(program.status, 0, program.words)
        self.assertIn(run_hash.lstrip("0"), json.dumps(json.loads(program.output))[-400_000:])

    def test_each_deed_makes_a_branch(self):
        self.open(RUN)
        self.browser.press("e")
        hashes = {self.hash()}
        for deed in ("pause", "cut", "fence", "disk", "hand"):
            with self.subTest(deed=deed):
                self.browser.run("const e = document.querySelector('[aria-label=\"What happens\"]');"
                                 "e.value = arguments[0]; e.dispatchEvent(new Event('change'))", deed)
                hashes.add(self.wait_for_run(lambda: self.browser.click("#act")))
                self.assertIsNone(self.browser.text(".sim-problem"))
                self.wait_for_run(lambda: self.browser.click("#undo"))
        self.assertEqual(len(hashes), 6)
        self.assertEqual(len(self.browser.texts(".sim-branch")), 6)

    def test_somebody_is_the_network(self):
        self.open(RUN)
        self.browser.press("e")
        self.wait_for_run(lambda: self.browser.click_text("Be the network"))
        self.browser.wait_for_text(".sim-net", "You are the network")
        begin = self.steps()
        self.assertEqual(self.step(), begin)
        self.wait_for_run(lambda: self.browser.click("#net-time"))
        for _ in range(40):
            if self.browser.texts("[data-take]"):
                break
            self.wait_for_run(lambda: self.browser.click("#net-time"))
        waits = len(self.browser.texts("[data-take]"))
        self.assertGreater(waits, 0, self.browser.told())
        self.judge("network")
        self.wait_for_run(lambda: self.browser.click("[data-take]"))
        self.assertGreater(self.steps(), begin)
        self.assertEqual(self.step(), self.steps())
        self.browser.press("g")
        wait_until(lambda: not self.browser.text(".sim-opening"), 30, self.browser.told)
        self.see_deeds()
        self.wait_for_run(lambda: self.browser.click_text("Work by itself again"))
        self.assertGreater(self.steps(), begin + 500)
        self.assertIsNone(self.browser.text(".sim-net"))

    def see_deeds(self):
        for part in (".net", ".time", ".take."):
            self.assertIn(part, urllib.parse.unquote(self.settled()))

    def test_files_are_what_the_run_was(self):
        self.open(RUN)
        self.browser.click(".sim-export summary")
        for button, ending in (("save-svg", "svg"), ("save-pcap", "pcapng"), ("save-text", "txt")):
            self.browser.click(f"#{button}")
            file = wait_until(lambda: next((one for one in self.directory.glob(f"**/swarmkeeper-*.{ending}")
                                            if one.stat().st_size), None), 20, f"a file of {ending}")
            content = file.read_bytes()
            if ending == "svg":
                self.assertTrue(content.startswith(b"<svg "), content[:80])
            elif ending == "pcapng":
                self.assertEqual(content[:4], bytes.fromhex("0a0d0d0a"))
            else:
                self.assertIn(self.hash().lstrip("0"), content.decode()[-400:])


class Links(PlaygroundTest):

    def test_a_link_that_is_wrong_says_what_and_what_to_do(self):
        for words in ("seed=banana", "seed=1&profile=paxo", "seed=1&profile=paxos&if=9.fly.2", "colour=red"):
            with self.subTest(words=words):
                self.browser.driver.get("about:blank")
                self.browser.driver.get(f"{self.folder.origin}/#sim?{words}")
                self.browser.wait_for(".sim-problem", 60)
                text = self.browser.text(".sim-problem")
                self.assertIn("This cannot be run.", text)
                self.assertGreater(len(text), 60)
        self.judge("problem")
        self.browser.click_text("Begin with a story")
        self.browser.wait_for(".sim-verdict b", 60)
        self.assertIsNone(self.browser.text(".sim-problem"))

    def test_a_link_of_another_version_says_so(self):
        self.open(f"{RUN}&v=0123456789abcdef")
        self.browser.wait_for_text(".sim-other", "another version")
        self.assertIn(self.hash(), self.browser.text(".sim-other"))
        self.browser.click_text("Understood")
        wait_until(lambda: self.browser.text(".sim-other") is None, 5, self.browser.told)

    def test_a_link_says_when(self):
        self.open(f"{RUN}&at=12.3")
        self.assertRegex(self.browser.text(".sim-step .heading"), r" 12\.[23]\d+ s")

    def test_nothing_is_asked_of_anybody_but_for_the_files(self):
        self.open(RUN)
        self.browser.press("e", "c")
        self.settled()
        self.assertEqual([path for path in self.folder.asked if not re.search(r"\.(js|mjs|css|wasm)$|^/$", path)], [])


class Sweeps(PlaygroundTest):
    is_heavy = True

    def test_five_hundred_seeds_have_the_same_hash_as_natively(self):
        self.open("profile=paxos&stress=lossy&first=1&count=500", path="sweep")
        began = time.monotonic()
        self.browser.click("#sweep")
        self.browser.wait_for("#sweep-hash", 300)
        in_browser = 500 / (time.monotonic() - began)
        self.judge("sweep")
        self.assertIn("500 of 500 seeds, all promises hold", self.browser.text(".sim-sweep-words"))
        words = shlex.split(self.browser.text(".sim-command"))
        began = time.monotonic()
        program = self.run_program(*words[1:], "--json", within=200)
        natively = 500 / (time.monotonic() - began)
        self.assertEqual(json.loads(program.output)["trace_hash"], self.browser.text("#sweep-hash"))
        memory = float(re.search(r"([\d.]+) MiB of memory", self.browser.text(".card .muted"))[1])
        self.assertLess(memory, 256)
        print(f"{in_browser:.0f} scenarios a second in the browser, {natively:.0f} natively; {memory} MiB a worker")

    def test_a_sweep_can_be_stopped(self):
        self.open("profile=paxos&first=1&count=100000", path="sweep")
        self.browser.click("#sweep")
        wait_until(lambda: int(re.search(r"([\d,]+) of", self.browser.text(".sim-sweep-words") or "0 of")[1]
                               .replace(",", "")) > 8, 60, self.browser.told)
        self.browser.click("#stop")
        self.browser.wait_for_text(".sim-sweep-words", "Stopped.")


@unittest.skipUnless(PLANTED.exists(), f"{PLANTED} is not there: Wasm/build planted")
class Failures(PlaygroundTest):
    module = PLANTED

    def test_a_seed_that_fails_is_found_opened_where_it_fails_and_made_smaller(self):
        self.open("profile=paxos&first=1&count=40", path="sweep")
        self.browser.click("#sweep")
        self.browser.wait_for(".sim-failures a", 120)
        self.browser.wait_for("#sweep-hash", 300)
        self.judge("failures")
        self.browser.click(".sim-failures a")
        self.browser.wait_for(".sim-broken", 60)
        broken = self.browser.text(".sim-broken b")
        self.assertIn(broken, self.browser.text(".sim-broken-link"))
        self.judge("broken")
        whole = self.hash()
        self.browser.click("#shrink")
        self.browser.wait_for_text(".sim-shrink", "does not get smaller", 300)
        self.judge("shrunk")
        self.assertNotEqual(self.wait_for_run(lambda: self.browser.click("#open-smaller")), whole)
        self.browser.wait_for(".sim-broken")
        self.assertRegex(self.settled(), "only-trackers|seconds|without|faults|injections")
        self.fails_natively(broken)

    def fails_natively(self, broken):
        """The same words, given to the program that plants the module's mistake."""
        program = pathlib.Path(__file__).parent.parent / "PlantedBugs/.build/release/planted-bugs"
        if not program.exists():
            self.skipTest(f"{program} is not there: make planted-bugs")
        words = "&".join(part for part in self.browser.address.split("?", 1)[1].split("&")
                         if part.split("=")[0] not in ("at", "step", "v", "from", "until"))
        found = subprocess.run([program, "--words", "promiseForgotten", words], capture_output=True, text=True, timeout=60)
        self.assertEqual(found.returncode, 1, found)
        self.assertIn(broken, found.stdout)
        self.assertIn(self.hash(), found.stdout)


class Smoothness(PlaygroundTest):

    def test_a_long_run_is_scrubbed_without_a_stutter(self):
        self.open(LONG_RUN)
        self.assertGreater(self.steps(), 12_000)
        self.browser.driver.set_script_timeout(120)
        self.browser.driver.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
        for view in ("close", "whole"):
            with self.subTest(view=view):
                if view == "whole":
                    self.browser.click("[title='The whole run']")
                before = self.busy()
                frames = sorted(self.browser.driver.execute_async_script(SCRUB))
                each = (self.busy() - before) / len(frames)
                print(f"{view}: {each * 1000:.1f} ms of a processor a frame; frames of {frames[len(frames) // 2]:.0f} ms, "
                      f"at most {frames[-1]:.0f} ms")
                self.assertGreaterEqual(len(frames), 200)
                # How long a frame takes depends on who else is busy on this machine; what it costs does not.
                self.assertLess(each, FRAME)

    def busy(self):
        """Seconds of a processor that the page's thread has taken."""
        metrics = self.browser.driver.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
        return next(one["value"] for one in metrics if one["name"] == "TaskDuration")


SCRUB = """
const done = arguments[0];
const strip = document.querySelector(".sim-scrubber .sim-now");
const box = strip.getBoundingClientRect();
strip.setPointerCapture = () => {};
const send = (kind, share) => strip.dispatchEvent(new PointerEvent(kind, { pointerId: 1, bubbles: true,
    clientX: box.left + 8 + share * (box.width - 16), clientY: box.top + 20 }));
const frames = [];
let [at, last] = [0, null];
send("pointerdown", 0);
requestAnimationFrame(function frame(now) {
    if (last !== null) frames.push(now - last);
    last = now;
    if (at > 200) {
        send("pointerup", 0.5);
        return done(frames);
    }
    send("pointermove", (at * 37 % 200) / 200);
    at += 1;
    requestAnimationFrame(frame);
});
"""


class WithoutModule(PlaygroundTest):
    module = None
    expected = ("simulator.wasm",)

    def test_it_says_how_to_get_it_and_what_does_the_same(self):
        self.browser.driver.get(f"{self.folder.origin}/#sim?seed=12&profile=classic&stress=slow")
        self.browser.wait_for(".sim-missing", 30)
        text = self.browser.text(".sim-missing")
        self.assertIn("make wasm", text)
        self.assertIn("tracker simulate --profile classic --stress slow --seeds 12..12", text)
        self.judge("missing")


class Explorers(PlaygroundTest):

    def test_somebody_walks_through_the_choices_and_back(self):
        self.open(path="walk")
        self.browser.wait_for(".sim-choices button", 60)
        first = self.browser.text(".sim-walk h2 + p") or self.browser.text(".sim-walk")
        for depth in range(1, 5):
            self.browser.click(".sim-choices button")
            wait_until(lambda: len(self.browser.texts(".sim-path li")) == depth, 20, self.browser.told)
        self.judge("walk")
        self.browser.click("#walk-back")
        wait_until(lambda: len(self.browser.texts(".sim-path li")) == 3, 20, self.browser.told)
        self.browser.run("const e = document.querySelector('[aria-label=\"Go to a state that was visited\"]');"
                         "e.value = e.options[1].value; e.dispatchEvent(new Event('change'))")
        wait_until(lambda: not self.browser.texts(".sim-path li"), 20, self.browser.told)
        self.assertTrue(first)
