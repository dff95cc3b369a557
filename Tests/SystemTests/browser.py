"""A real browser for tests of the console: Debian's Chromium, without a window, steered by its driver.

`Browser` is one window, used in a `with` statement. From the first line of a page on it writes down what should never
happen: a violation of the Content-Security-Policy, an error that nobody caught, a call of `alert` by what was smuggled
in. `problems()` tells all of it, beside what the browser itself complained of. `faults_of_page()` is what a reader with a
screen reader, or with weak eyes, would miss: names, labels, headers, contrast (WCAG 2.1, 1.4.3: 4.5 to 1).
"""

import importlib.util
import os
import shutil

from serving import wait_until

PROGRAMS = {"chromium": "chromium", "chromedriver": "chromium-driver"}
"""The programs that this module runs, each with its Debian package."""

WIDE, NARROW = (1440, 900), (360, 740)

_WITNESS = """
    window.__seen = [];
    const see = (what) => window.__seen.push(String(what).slice(0, 300));
    addEventListener("securitypolicyviolation", (e) => see(`policy: ${e.violatedDirective} ${e.blockedURI}`));
    addEventListener("error", (e) => see(`error: ${e.message}`));
    addEventListener("unhandledrejection", (e) => see(`rejection: ${e.reason}`));
    for (const name of ["alert", "confirm", "prompt"]) window[name] = () => see(`${name} was called`);
"""

_FAULTS = r"""
const faults = [];
const isSeen = (e) => e.checkVisibility({ visibilityProperty: true }) && !e.closest("[hidden], .unseen, .skip");
const named = (e) => (e.getAttribute("aria-label") || e.textContent || e.title || "").trim();
const tell = (e, what) => faults.push(`${what}: ${e.outerHTML.slice(0, 140)}`);
if (document.querySelectorAll("h1").length !== 1) faults.push(`${document.querySelectorAll("h1").length} first headings`);
if (!document.documentElement.lang) faults.push("no language");
for (const e of document.querySelectorAll("a[href], button")) if (isSeen(e) && !named(e)) tell(e, "no name");
for (const e of document.querySelectorAll("input, select, textarea")) {
    if (isSeen(e) && !e.labels.length && !e.getAttribute("aria-label")) tell(e, "no label");
}
for (const e of document.querySelectorAll("canvas:not([aria-hidden])")) {
    if (isSeen(e) && !named(e)) tell(e, "a picture without words");
}
for (const e of document.querySelectorAll("th")) if (isSeen(e) && !e.scope) tell(e, "a header of nothing");
for (const e of document.querySelectorAll("table")) {
    if (isSeen(e) && !e.querySelector("th")) tell(e, "a table without headers");
}
const ids = [...document.querySelectorAll("[id]")].map((e) => e.id);
for (const id of ids) if (ids.indexOf(id) !== ids.lastIndexOf(id)) faults.push(`twice the id ${id}`);
const parts = (color) => (color.match(/[\d.]+/g) || [0, 0, 0, 0]).map(Number);
const over = (top, below) => top.slice(0, 3).map((c, i) => c * (top[3] ?? 1) + below[i] * (1 - (top[3] ?? 1)));
const ground = (e) => {
    const layers = [];
    for (let at = e; at; at = at.parentElement) layers.push(parts(getComputedStyle(at).backgroundColor));
    return layers.reverse().reduce((below, one) => over(one, below), [255, 255, 255]);
};
const light = (color) => {
    const [r, g, b] = color.map((c) => (c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
    const e = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !isSeen(e) || e.closest(":disabled, option, [aria-hidden], noscript")) continue;
    const style = getComputedStyle(e);
    let opacity = 1;
    for (let at = e; at; at = at.parentElement) opacity *= Number(getComputedStyle(at).opacity);
    const below = ground(e);
    const [r, g, b, a = 1] = parts(style.color);
    const pair = [light(over([r, g, b, a * opacity], below)), light(below)].sort((x, y) => y - x);
    const ratio = (pair[0] + 0.05) / (pair[1] + 0.05);
    const isLarge = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.66 && style.fontWeight >= 700);
    if (ratio < (isLarge ? 3 : 4.5)) tell(e, `contrast ${ratio.toFixed(2)}`);
}
const main = document.querySelector("main");
const isTooWide = document.documentElement.scrollWidth > innerWidth || main.scrollWidth > main.clientWidth;
if (isTooWide) faults.push("it is wider than the window");
return [...new Set(faults)];
"""


def missing():
    """What is not installed, each with the package that brings it."""
    lacks = [f"{program}: apt install {package}" for program, package in PROGRAMS.items() if not shutil.which(program)]
    if importlib.util.find_spec("selenium") is None:
        lacks.append("selenium for /usr/bin/python3: apt install python3-selenium")
    return lacks


class Browser:
    """A window on a page; `directory` is for what the browser keeps."""

    def __init__(self, directory):
        self._directory = directory

    def __enter__(self):
        from selenium import webdriver
        from selenium.webdriver.chrome.service import Service
        self._directory.mkdir(exist_ok=True)
        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium")
        # The sandbox is not for root, and /dev/shm of a container may be small.
        for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-proxy-server",
                     "--disable-background-networking", "--disable-component-update", "--no-first-run",
                     f"--user-data-dir={self._directory / 'browser'}"):
            options.add_argument(flag)
        options.add_experimental_option("prefs", {"download.default_directory": str(self._directory)})
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        log = str(self._directory / "chromedriver.log")
        self.driver = webdriver.Chrome(
            service=Service(shutil.which("chromedriver"), log_path=log, env={**os.environ, "HOME": str(self._directory)}),
            options=options)
        self.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": _WITNESS})
        self._told = []
        self.look(WIDE, "light")
        return self

    def __exit__(self, *_):
        self.driver.quit()

    # Where it is, and how it looks

    def open(self, origin, page=""):
        """Opens a page of a console, by the part of its address after `#/`, and waits until it is there."""
        self._told += self.run("return window.__seen ?? []")
        self.driver.get("about:blank")
        self.driver.get(f"{origin}/#/{page}")
        self.wait_for("#page h1")

    def go(self, page):
        """Another page of the console that is open."""
        self.run("location.hash = '#/' + arguments[0]", page)
        self.wait_for("#page h1")

    @property
    def address(self):
        return self.driver.current_url

    def look(self, size, scheme):
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": size == NARROW})
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [
            {"name": "prefers-color-scheme", "value": scheme}, {"name": "prefers-reduced-motion", "value": "reduce"}]})

    def picture(self, path):
        self.driver.save_screenshot(str(path))

    # What it shows

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def find(self, selector):
        return self.driver.find_element("css selector", selector)

    def text(self, selector):
        """The text of the first such element as it is shown; None where there is none, or it is not shown."""
        return self.run("const e = document.querySelector(arguments[0]); "
                        "return e && e.checkVisibility() ? e.innerText : null", selector)

    def texts(self, selector):
        return self.run("return [...document.querySelectorAll(arguments[0])].filter((e) => e.checkVisibility())"
                        ".map((e) => e.innerText)", selector)

    def rows(self, selector):
        """The cells of a table's rows, as texts."""
        return self.run("return [...document.querySelectorAll(arguments[0])].map((row) => "
                        "[...row.cells].filter((e) => e.checkVisibility()).map((e) => e.innerText))", selector)

    def wait_for(self, selector, seconds=10):
        wait_until(lambda: self.text(selector) is not None, seconds, lambda: f"{selector} in {self.told()}")

    def wait_for_text(self, selector, part, seconds=10):
        wait_until(lambda: part in (self.text(selector) or ""), seconds, lambda: f"{part!r} in {selector} of {self.told()}")

    def told(self):
        """The address and what the page says, for failures."""
        return f"{self.address}:\n{(self.text('body') or '')[:1500]}"

    # What is done to it

    def click(self, selector):
        self.wait_for(selector)
        self.run("document.querySelector(arguments[0]).scrollIntoView({ block: 'center' })", selector)
        self.find(selector).click()

    def click_text(self, text, within="body"):
        """Clicks the button or link with this text."""
        def found():
            return self.run(
                "return [...document.querySelectorAll(`${arguments[1]} button, ${arguments[1]} a`)]"
                ".find((e) => e.checkVisibility() && e.innerText.trim() === arguments[0]) ?? null", text, within)
        wait_until(found, 10, lambda: f"a button {text!r} in {self.told()}").click()

    def type(self, selector, text):
        self.wait_for(selector)
        self.run("const e = document.querySelector(arguments[0]); e.value = ''; e.focus()", selector)
        self.find(selector).send_keys(text)

    def wheel(self, selector, by):
        """Turns the wheel over the middle of an element."""
        from selenium.webdriver.common.action_chains import ActionChains
        from selenium.webdriver.common.actions.wheel_input import ScrollOrigin
        ActionChains(self.driver).scroll_from_origin(ScrollOrigin.from_element(self.find(selector)), 0, by).perform()

    def drag(self, selector, by):
        """Drags the middle of an element to the right."""
        from selenium.webdriver.common.action_chains import ActionChains
        ActionChains(self.driver).drag_and_drop_by_offset(self.find(selector), by, 0).perform()

    def press(self, *keys):
        """Presses keys, whatever has the focus."""
        from selenium.webdriver.common.action_chains import ActionChains
        ActionChains(self.driver).send_keys(*keys).perform()

    # What is wrong

    def problems(self, but=()):
        """What went wrong in any page so far, except complaints with one of some texts in them."""
        seen = self.run("return window.__seen ?? []")
        self._told += [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] == "SEVERE"]
        return [problem for problem in [*seen, *self._told] if not any(text in problem for text in but)]

    def faults_of_page(self):
        return self.run(_FAULTS)
