"""The simulator's page as it is served: the same simulator in a real browser as natively, and what the page may do.

What the page shows, and what one does with it, is for test_playground.py."""

import contextlib
import functools
import gzip
import http.server
import json
import shutil
import subprocess
import threading
import urllib.error
import urllib.request

import browser
from playgrounds import MODULE, require_playground
from serving import Program, TrackerTest, wait_until
from world import ROOT, tracker_program

CONFIGURATION = 78
POLICY = {"default-src": "'none'", "script-src": "'self' 'wasm-unsafe-eval'", "worker-src": "'self'",
          "style-src": "'self'", "img-src": "'self' data:", "connect-src": "'self'", "form-action": "'self'",
          "base-uri": "'none'", "frame-ancestors": "'none'"}
SEEDS = 20

# What a page does with the module, in a worker that is a file of the page's.
RUN_ALL = """
    const [seeds, golden, done] = arguments;
    (async () => {
        const { Simulator } = await import(new URL("./simulator.mjs", location.href));
        const simulator = await Simulator.load(await (await fetch("./simulator.wasm")).arrayBuffer());
        const hash = (profile, seed) => simulator.run(profile, BigInt(seed)).hash.toString(16);
        const began = performance.now();
        const sweep = simulator.profiles.map((profile) =>
            [profile, Array.from({ length: seeds }, (_, at) => hash(profile, at + 1))]);
        const seconds = (performance.now() - began) / 1000;
        return { golden: golden.map(([profile, seed]) => hash(profile, seed)), sweep, seconds };
    })().then(done, (error) => done({ error: String(error) }));
"""
TRY = """
    const [done] = arguments;
    const module = new Uint8Array([0, 0x61, 0x73, 0x6d, 1, 0, 0, 0]);
    WebAssembly.compile(module).then(() => done("compiled"), (error) => done(error.name));
"""


def setUpModule():
    require_playground()


def sweep_hash(hashes):
    """Of a sweep, from those of its scenarios (Sources/Simulator/Reports/SweepTally.swift)."""
    mask = (1 << 64) - 1

    def mixed(z):
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & mask
        z = (z ^ z >> 27) * 0x94D049BB133111EB & mask
        return z ^ z >> 31
    hash = 0x5377656570486173
    for one in hashes:
        hash = mixed(hash ^ one) + 0x9E3779B97F4A7C15 & mask
    return f"{hash:016x}"


class PlaygroundTest(TrackerTest):
    expected = ()
    """Complaints of the browser that a test provokes."""

    def setUp(self):
        self.browser = self.stack.enter_context(browser.Browser(self.directory))
        self.browser.driver.set_script_timeout(120)
        self.addCleanup(lambda: self.assertEqual(self.browser.problems(self.expected), []))

    def serve_page(self, *flags, **options):
        place = self.place()
        self.serve(place, *flags, **options)
        return f"http://127.0.0.1:{place.console}"

    def open(self, address):
        self.browser.driver.get("about:blank")
        self.browser.driver.get(address)
        self.browser.wait_for("h1")

    def get(self, address, **headers):
        with urllib.request.urlopen(urllib.request.Request(address, headers=headers), timeout=30) as reply:
            return reply.headers, reply.read()

    def policy(self, address):
        text = self.get(address)[0]["Content-Security-Policy"]
        return dict(part.strip().split(" ", 1) for part in text.split(";"))

    def answers(self, address):
        with contextlib.suppress(OSError):
            return self.get(address)

    def run_all(self):
        """All golden hashes, and a sweep of each profile, in the page that is open; compares them with the native ones."""
        rows = [line.split() for line in (ROOT / "Tests/SimulationTests/golden-hashes.txt").read_text().splitlines()]
        self.assertGreater(len(rows), 4)
        found = self.browser.driver.execute_async_script(RUN_ALL, SEEDS, [row[:2] for row in rows])
        self.assertNotIn("error", found, found)
        self.assertEqual(found["golden"], [row[2] for row in rows])
        self.assertEqual({profile for profile, _, _ in rows}, {profile for profile, _ in found["sweep"]})
        seconds = 0
        for profile, hashes in found["sweep"]:
            native = json.loads(subprocess.run(
                [tracker_program(), "simulate", "--profile", profile, "--seeds", f"1..{SEEDS}", "--json"],
                check=True, capture_output=True).stdout)
            self.assertEqual(sweep_hash([int(one, 16) for one in hashes]), native["trace_hash"], profile)
            seconds += native["wall_seconds"]
        count = SEEDS * len(found["sweep"])
        print(f"\n{count / found['seconds']:.0f} scenarios a second in a thread of the browser, "
              f"{count / max(seconds, 0.001):.0f} natively on all processors")


class Served(PlaygroundTest):
    """By a tracker."""

    expected = ("policy: script-src", "Refused to compile", "violates the following Content Security policy",
                "status of 404")

    def test_a_seed_means_in_the_browser_what_it_means_natively(self):
        self.open(f"{self.serve_page('--simulator', MODULE)}/simulator/")
        self.run_all()

    def test_only_the_simulator_s_page_may_compile_modules(self):
        origin = self.serve_page("--simulator", MODULE)
        for path, outcome in (("/simulator/", "compiled"), ("/", "CompileError")):
            self.open(origin + path)
            self.assertEqual(self.browser.driver.execute_async_script(TRY), outcome, path)
        policies = [self.policy(origin + path) for path in ("/simulator/", "/simulator/dom.js", "/console/dom.js")]
        self.assertEqual(policies[:2], [POLICY, POLICY])
        self.assertNotIn("wasm", str(policies[2]))

    def test_the_console_leads_to_it_and_old_addresses_do(self):
        origin = self.serve_page("--simulator", MODULE)
        self.browser.open(origin)
        self.browser.click_text("Simulator", "nav")
        self.browser.wait_for("h1")
        self.assertTrue(self.browser.address.startswith(f"{origin}/simulator/"), self.browser.address)
        for before in ("#/simulator?profile=paxos&seed=17", "#sim?profile=paxos&seed=17"):
            self.open(f"{origin}/{before}")
            self.browser.wait_for("h1")
            self.assertIn("/simulator/#", self.browser.address)
            self.assertIn("profile=paxos&seed=17", self.browser.address)

    def test_the_module_goes_gzipped_and_is_asked_for_again_by_its_tag(self):
        address = f"{self.serve_page('--simulator', MODULE)}/simulator/simulator.wasm"
        headers, plain = self.get(address)
        self.assertEqual(headers["Content-Type"], "application/wasm")
        self.assertEqual(plain, MODULE.read_bytes())
        headers, squeezed = self.get(address, **{"Accept-Encoding": "gzip"})
        self.assertEqual(headers["Content-Encoding"], "gzip")
        self.assertLess(len(squeezed), len(plain) / 2)
        self.assertEqual(gzip.decompress(squeezed), plain)
        with self.assertRaises(urllib.error.HTTPError) as same:
            self.get(address, **{"Accept-Encoding": "gzip", "If-None-Match": headers["ETag"]})
        self.assertEqual(same.exception.code, 304)

    def test_the_program_finds_it_beside_itself_and_in_the_share_of_its_prefix(self):
        program = self.directory / "prefix" / "bin" / "tracker"
        program.parent.mkdir(parents=True)
        shutil.copy(tracker_program(), program)
        shared = self.directory / "prefix" / "share" / "swarmkeeper" / "simulator.wasm"
        shared.parent.mkdir(parents=True)
        near = program.parent / "simulator.wasm"
        for file, content in ((None, None), (shared, b"\0asm\1\0\0\0shared"), (near, b"\0asm\1\0\0\0near")):
            if file:
                file.write_bytes(content)
            with self.subTest(file=file):
                place = self.place()
                tracker = Program([program, "serve", *place.flags], place.next_log())
                self.programs.append(tracker)
                address = f"http://127.0.0.1:{place.console}/simulator/"
                wait_until(lambda: self.answers(address), 30, lambda: tracker.words)
                if content:
                    self.assertEqual(self.get(f"{address}simulator.wasm")[1], content)
                else:
                    with self.assertRaises(urllib.error.HTTPError) as missing:
                        self.get(f"{address}simulator.wasm")
                    self.assertEqual(missing.exception.code, 404)
                    self.assertIn("make wasm", json.load(missing.exception)["error"])
                    self.open(address)
                    self.browser.wait_for_text("body", "make wasm")
                tracker.kill()

    def test_what_is_no_module_is_refused_where_it_is_named(self):
        file = self.directory / "story.wasm"
        file.write_text("once upon a time")
        for path, words in ((file, "no module of WebAssembly"), (self.directory / "gone.wasm", "no such file")):
            variable = {"SWARMKEEPER_CONSOLE_SIMULATOR_FILE": str(path)}
            for flags, environment in ((["--simulator", path], {}), ([], variable)):
                program = self.run_program(
                    "serve", "--check", "--data", self.directory / "data", *flags, environment=environment)
                self.assertEqual(program.status, CONFIGURATION)
                self.assertIn(words, program.words)
                self.assertIn(str(path), program.words)


class Folder(PlaygroundTest):
    """By any web server."""

    def test_the_folder_of_make_playground_is_the_same_page(self):
        subprocess.run([ROOT / "scripts" / "playground"], check=True, capture_output=True)
        folder = ROOT / ".build-wasm" / "playground"

        class Handler(http.server.SimpleHTTPRequestHandler):
            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(
            ("127.0.0.1", 0), functools.partial(Handler, directory=str(folder.parent)))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.stack.callback(server.server_close)
        self.stack.callback(server.shutdown)
        # Not at the root: nothing in it may be an address of its own.
        self.open(f"http://127.0.0.1:{server.server_port}/playground/")
        self.assertIsNone(self.browser.run("return document.querySelector('meta[name=served-by]')"))
        self.run_all()
        self.assertIn("Content-Security-Policy", (folder / "README.txt").read_text())
