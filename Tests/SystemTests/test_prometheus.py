"""The files of `deploy/` with a real Prometheus, which scrapes three trackers by their consoles' token.

What is shipped is what is tried: the example with other addresses and a shorter interval, the rules as they stand, and
each query of the dashboard.
"""

import contextlib
import json
import pathlib
import re
import shutil
import subprocess
import unittest
import urllib.error
import urllib.parse
import urllib.request

import cluster
from crowd import Crowd
from namespaces import wait_until
from serving import TrackerTest, mounted
from test_bad_input import fill_up
from world import ROOT

DEPLOY = ROOT / "deploy"
EXAMPLE = DEPLOY / "prometheus" / "prometheus.yml"
RULES = DEPLOY / "prometheus" / "swarmkeeper-alerts.yml"
RULE_TESTS = DEPLOY / "prometheus" / "swarmkeeper-alerts-test.yml"
DASHBOARD = DEPLOY / "grafana" / "swarmkeeper.json"
OPERATIONS = ROOT / "docs" / "operations.md"

PORT = 9090
PACKAGE = "prometheus"
OF_PROMETHEUS = {"up", "ALERTS"}
"""Series that Prometheus makes itself."""
TOKEN = "a-token-for-those-who-watch"


def setUpModule():
    cluster.require_cluster()
    missing = [program for program in ("prometheus", "promtool") if not shutil.which(program)]
    if missing:
        raise AssertionError(f"the system tests miss {' and '.join(missing)}: apt install {PACKAGE}")


def promtool(*arguments, text=None, directory=None):
    """Runs promtool: its exit code and all that it said."""
    done = subprocess.run(["promtool", *map(str, arguments)], input=text, capture_output=True, text=True, timeout=120,
                          cwd=directory)
    return done.returncode, done.stdout + done.stderr


# What is written in an expression. All selectors of ours have braces, for they name the job.

SELECTOR = re.compile(r"([a-zA-Z_:][\w:]*)\{([^}]*)\}")
MATCHER = re.compile(r'(\w+)\s*(=~|!~|!=|=)\s*"([^"]*)"')


def selectors(expression):
    """Each (metric, [(label, value)]) that an expression names; an alternative of a pattern is a value of its own."""
    return [(name, [(label, value) for label, _, pattern in MATCHER.findall(inner) for value in pattern.split("|")])
            for name, inner in SELECTOR.findall(expression)]


def samples(page):
    """Of a page of metrics: name → a list of the labels of each sample."""
    found = {}
    for line in page.splitlines():
        if line and not line.startswith("#"):
            name, inner = re.match(r"([^{ ]+)(?:\{(.*)\})? ", line).groups()
            found.setdefault(name, []).append({label: value for label, _, value in MATCHER.findall(inner or "")})
    return found


class Watched(cluster.Cluster):
    """Three trackers whose consoles listen on the network, for who has the token."""

    console_token = TOKEN

    def __init__(self):
        super().__init__("multicast")

    def _build(self):
        token = self.directory / "console.token"
        token.write_text(TOKEN + "\n")
        token.chmod(0o600)
        # Of two, the later counts.
        self.flags = ["--console", f"0.0.0.0:{cluster.CONSOLE}", "--console-token-file", token]
        super()._build()
        self.watch = Prometheus(self, token)


class Prometheus:
    """A Prometheus on a host of its own, with the example's configuration for these trackers."""

    def __init__(self, trackers, token):
        self.host = trackers.host("prometheus")
        directory = trackers.directory / "prometheus"
        directory.mkdir()
        self.configuration = directory / "prometheus.yml"
        shutil.copy(RULES, directory)
        words = EXAMPLE.read_text()
        for old, new in [*((f"tracker{member.number}.example", member.host.ipv4) for member in trackers.members),
                         ("/etc/prometheus/swarmkeeper.token", str(token)), ("_interval: 15s", "_interval: 1s"),
                         ("scrape_timeout: 14s", "scrape_timeout: 1s")]:
            assert old in words, f"the example has no {old}"
            words = words.replace(old, new)
        self.configuration.write_text(words)
        self.process = self.host.start(
            ["prometheus", "--config.file", self.configuration, "--storage.tsdb.path", directory / "data",
             "--web.listen-address", f"127.0.0.1:{PORT}", "--log.level", "warn"], directory)
        wait_until(self.is_ready, 30, lambda: f"Prometheus is ready; it says:\n{self.process.words()}")

    def is_ready(self):
        assert self.process.status is None, f"Prometheus ended:\n{self.process.words()}"
        with contextlib.suppress(OSError):
            return self._get("/-/ready")

    def _get(self, path):
        with self.host.entered():
            connection = urllib.request.build_opener(urllib.request.ProxyHandler({}))
            try:
                with connection.open(f"http://127.0.0.1:{PORT}{path}", timeout=60) as reply:
                    return reply.read()
            except urllib.error.HTTPError as error:
                if error.code != 400:
                    raise
                return error.read()  # An expression that is none; the answer says why.

    def ask(self, path, **query):
        answer = json.loads(self._get(f"/api/v1/{path}?{urllib.parse.urlencode(query)}"))
        assert answer["status"] == "success", f"{query}: {answer.get('error')}"
        return answer["data"]

    def query(self, expression):
        """An instant vector: a list of (labels, value)."""
        return [(each["metric"], float(each["value"][1])) for each in self.ask("query", query=expression)["result"]]

    def targets(self):
        """Of each target, by its address: how it is."""
        return {target["labels"]["instance"]: (target["health"], target["lastError"])
                for target in self.ask("targets", state="active")["activeTargets"]}

    def rules(self):
        return [rule for group in self.ask("rules", type="alert")["groups"] for rule in group["rules"]]

    def alerts(self):
        """Alerts that fire, or are about to: (name, instance or none) → state."""
        return {(alert["labels"]["alertname"], alert["labels"].get("instance")): alert["state"]
                for alert in self.ask("alerts")["alerts"]}


class Dashboard:
    """The queries of the dashboard's file."""

    def __init__(self, path):
        self.document = json.loads(path.read_text())
        self.panels = [panel for panel in self.document["panels"] if panel["type"] != "row"]
        self.rows = [panel["title"] for panel in self.document["panels"] if panel["type"] == "row"]

    def queries(self):
        """Each (title, expression), with variables as Grafana would put them in."""
        found = [(panel["title"], target["expr"]) for panel in self.panels for target in panel["targets"]]
        found += [(note["name"], note["expr"]) for note in self.document["annotations"]["list"] if "expr" in note]
        return [(title, self.filled_in(expression)) for title, expression in found]

    def filled_in(self, expression):
        for name, value in {"$__rate_interval": "30s", "$cluster": "main", "$instance": ".*"}.items():
            expression = expression.replace(name, value)
        assert "$" not in expression, f"a variable that is not known: {expression}"
        return expression


class Files(unittest.TestCase):

    def test_rules_fire_when_they_should_and_only_then(self):
        code, words = promtool("check", "rules", "--lint=all", "--lint-fatal", RULES)
        self.assertEqual(code, 0, words)
        code, words = promtool("test", "rules", RULE_TESTS.name, directory=RULE_TESTS.parent)
        self.assertEqual(code, 0, words)
        alerts = re.findall(r"- alert: (\w+)", RULES.read_text())
        self.assertGreaterEqual(len(alerts), 20)
        self.assertEqual(len(alerts), len(set(alerts)))
        tests, told = RULE_TESTS.read_text(), OPERATIONS.read_text()
        for alert in alerts:
            self.assertTrue(alert in tests, f"{alert} is never seen to fire")
            self.assertTrue(f"`{alert}`" in told, f"docs/operations.md does not tell of {alert}")

    def test_the_example_is_a_configuration(self):
        code, words = promtool("check", "config", "--syntax-only", EXAMPLE)
        self.assertEqual(code, 0, words)

    def test_the_dashboard_can_be_imported(self):
        dashboard = Dashboard(DASHBOARD)
        document = dashboard.document
        self.assertIsNone(document["id"], "Grafana gives one where it is imported")
        self.assertEqual(dashboard.rows, ["Cluster", "Clients", "Commits", "Swarms", "Disk and process"])
        everything = document["panels"]
        self.assertEqual(len({panel["id"] for panel in everything}), len(everything))
        variables = {variable["name"]: variable for variable in document["templating"]["list"]}
        self.assertEqual(variables["datasource"]["type"], "datasource")
        self.assertEqual(variables["datasource"]["query"], "prometheus")
        taken = set()
        for panel in everything:
            place = panel["gridPos"]
            cells = {(x, y) for x in range(place["x"], place["x"] + place["w"])
                     for y in range(place["y"], place["y"] + place["h"])}
            self.assertTrue(all(x < 24 for x, _ in cells), panel["title"])
            self.assertFalse(cells & taken, f"«{panel['title']}» lies on another")
            taken |= cells
        for panel in dashboard.panels:
            self.assertTrue(panel["title"] and panel["description"] and panel["targets"])
            for each in [panel, *panel["targets"]]:
                self.assertEqual(each["datasource"], {"type": "prometheus", "uid": "${datasource}"}, panel["title"])


class Scraped(unittest.TestCase):

    def test_three_trackers_and_one_that_is_killed(self):
        with Watched() as trackers:
            watch = trackers.watch
            self.check_targets(trackers, watch)
            load = trackers.load(trackers.members[0], 50, 20)
            self.check_promtool_is_content(trackers, watch)
            self.check_names(trackers, watch)
            self.assertEqual(load.report()["lost"], 0)
            self.check_dashboard(watch)
            self.check_kill(trackers, watch)

    def check_targets(self, trackers, watch):
        expected = {self.instance(member): ("up", "") for member in trackers.members}
        wait_until(lambda: watch.targets() == expected, 30, watch.targets)
        with self.assertRaises(urllib.error.HTTPError) as refusal:
            trackers.console_token = "another-token-than-theirs"
            trackers.members[0].get("/metrics")
        trackers.console_token = TOKEN
        self.assertEqual(refusal.exception.code, 401)

    def instance(self, member):
        return f"{member.host.ipv4}:{cluster.CONSOLE}"

    def check_promtool_is_content(self, trackers, watch):
        code, words = promtool("check", "config", watch.configuration)
        self.assertEqual(code, 0, words)
        for member in trackers.members:
            page = member.get("/metrics").decode()
            self.assertEqual(promtool("check", "metrics", text=page), (0, ""))
            # And it would not be content with anything.
            spoilt = page.replace("swarmkeeper_announces_total", "swarmkeeper_announces")
            self.assertNotEqual(promtool("check", "metrics", text=spoilt), (0, ""))

    def check_names(self, trackers, watch):
        """What rules, dashboard and documentation name is what each tracker tells."""
        rules = watch.rules()
        self.assertEqual(sorted(rule["name"] for rule in rules),
                         sorted(re.findall(r"- alert: (\w+)", RULES.read_text())))
        for rule in rules:
            self.assertEqual(rule["health"], "ok", rule)
            self.assertIn(rule["labels"]["severity"], ["critical", "warning"])
            self.assertEqual(sorted(rule["annotations"]), ["description", "summary"])
            self.assertGreater(rule["duration"], 0, rule["name"])
        expressions = [(rule["name"], rule["query"]) for rule in rules] + Dashboard(DASHBOARD).queries()
        for member in trackers.members:
            told = samples(member.get("/metrics").decode())
            for place, expression in expressions:
                named = selectors(expression)
                self.assertTrue(named, expression)
                for name, labels in named:
                    self.assertTrue(name in told or name in OF_PROMETHEUS, f"{place}: nobody tells of {name}")
                    for label, value in labels if name in told else []:
                        if label in ("job", "cluster", "instance"):
                            continue  # These come from Prometheus' configuration.
                        self.assertTrue(any(each.get(label) == value for each in told[name]),
                                        f"{place}: no {name} has {label}={value}")
                bare = re.findall(r"\b(?:swarmkeeper|process)_\w+", expression)
                self.assertEqual(sorted(bare), sorted(name for name, _ in named if name not in OF_PROMETHEUS),
                                 f"{place}: a metric without its job")
            families = {re.sub(r"_(bucket|sum|count)$", "", name) for name in told} | set(told)
            for name in re.findall(r"\bswarmkeeper_\w+", OPERATIONS.read_text()):
                self.assertIn(name, families, "docs/operations.md")

    def check_dashboard(self, watch):
        """Each query is one, and brings something; those that show only what is wrong may bring nothing."""
        for title, expression in Dashboard(DASHBOARD).queries():
            with self.subTest(title):
                # Nothing here is an hour old.
                watch.query(expression)
                always = re.sub(r"\s+(> 0|== 1)$", "", expression.replace(" offset 1h", ""))
                self.assertTrue(watch.query(always), f"nothing comes of {always}")
        [(_, answers)] = watch.query('sum(swarmkeeper_announces_total{job="swarmkeeper"})')
        self.assertGreaterEqual(answers, 900)
        for what in ("commit", "write", "answer", "bus_round_trip"):
            [(_, slow)] = watch.query(
                f"histogram_quantile(0.99, sum by (le) (rate(swarmkeeper_{what}_seconds_bucket[1m])))")
            self.assertGreater(slow, 0, what)
            self.assertLess(slow, 10, what)

    def check_kill(self, trackers, watch):
        trackers.wait_until_serving()
        victim = trackers.master()
        self.assertEqual([name for name, _ in watch.alerts() if name.startswith(
            ("SwarmkeeperNo", "SwarmkeeperTracker", "SwarmkeeperDisk", "SwarmkeeperBusLost"))], [])
        victim.kill()
        dead = ("SwarmkeeperTrackerDown", self.instance(victim))
        wait_until(lambda: watch.alerts().get(dead) == "pending", 30, lambda: f"{dead} is pending; {watch.alerts()}")
        self.assertEqual(watch.targets()[self.instance(victim)][0], "down")
        wait_until(lambda: watch.alerts().get(dead) == "firing", 90, lambda: f"{dead} fires; {watch.alerts()}")
        master = trackers.wait_until_serving()
        narrow = ("SwarmkeeperNoMajorityMargin", self.instance(master))
        wait_until(lambda: watch.alerts().get(narrow) in ("pending", "firing"), 30,
                   lambda: f"{narrow}; {watch.alerts()}")
        # One is dead, and that is all: the two others serve.
        down = [key for key, state in watch.alerts().items() if state == "firing" and key not in (dead, narrow)]
        self.assertEqual([name for name, _ in down if name in (
            "SwarmkeeperNobodyServes", "SwarmkeeperNoMaster", "SwarmkeeperTrackerDown", "SwarmkeeperTrackerHangs",
            "SwarmkeeperTrackerSilent", "SwarmkeeperBusLost", "SwarmkeeperDiskFails")], [])
        victim.start()
        wait_until(lambda: not {dead, narrow} & set(watch.alerts()), 60, lambda: f"all is well; {watch.alerts()}")


class Disk(TrackerTest):

    def test_a_disk_that_fills_up_is_told(self):
        with mounted(self.directory / "disk", "size=12m") as disk:
            tracker = self.serve(self.place(disk / "data"))
            client = self.client(tracker)
            self.assertEqual(self.told(tracker), ("works", 0, []))
            crowd = self.stack.enter_context(Crowd(tracker.place.udp, swarms=30, peers_each=150, seed=9))
            crowd.announce(client, 60, until=lambda: crowd.answers > 100)
            fill_up(disk / "ballast")
            self.assertTrue(crowd.announce(client, 120, until=lambda: crowd.refusals > 20), "announces are refused")
            wait_until(lambda: self.told(tracker) == ("full", 1, ["diskFails"]), 10, lambda: self.told(tracker))
            answers = crowd.answers
            (disk / "ballast").unlink()
            self.assertTrue(crowd.announce(client, 120, until=lambda: crowd.answers > answers), "and taken again")
            wait_until(lambda: self.told(tracker) == ("works", 0, []), 10, lambda: self.told(tracker))

    def told(self, tracker):
        """How the disk is, whether clients get no answer for it, and the codes of what is wrong with the tracker."""
        page = tracker.get("/metrics").decode()
        [disk] = re.findall(r'^swarmkeeper_disk\{state="(\w+)"\} 1$', page, re.MULTILINE)
        [silent] = re.findall(r"^swarmkeeper_silent ([01])$", page, re.MULTILINE)
        findings = re.findall(r'^swarmkeeper_finding\{code="(\w+)"\} 1$', page, re.MULTILINE)
        return disk, int(silent), [code for code in findings if code != "kernelDrops"]


if __name__ == "__main__":
    unittest.main()
