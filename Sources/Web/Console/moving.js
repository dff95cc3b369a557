// To the next console, when the one whose page this is has gone.
//
// The page may speak to nobody but its own tracker (Content-Security-Policy, no CORS), so it cannot ask whether another
// console answers; it can only go there. It goes to one that was up when last heard of, and says in the address which
// ones were tried (`tried=host:port,…`), so that it does not go round for ever. The rest of the address goes along.

import { h, named, byId, list } from "./dom.js";
import { isBusy, tell } from "./dialog.js";
import { look, route } from "./route.js";
import { computed, effect, signal } from "./signals.js";
import { link, state, tick } from "./stream.js";

const showAfter = 3;
const moveAfter = 8;
const settled = 15_000;
const stay = signal(false);
const isLoopback = (host) => /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(host);
const isAnywhere = (host) => host === "0.0.0.0" || host === "[::]";

/** The origin of a console from what its tracker tells, "host:port" or a URL; null where nobody can go there. */
export function origin(text, here = location) {
    if (!text || text === "none") return null;
    let url;
    try {
        url = new URL(/^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `${here.protocol}//${text}`);
    } catch {
        return null;
    }
    if (url.protocol !== "http:" && url.protocol !== "https:") return null;
    if (isAnywhere(url.hostname) || (isLoopback(url.hostname) && !isLoopback(here.hostname))) return null;
    return url.origin;
}

/** The trackers with their consoles: { id, isThis, isUp, origin }. */
export const consoles = computed(() => (state.value?.status.cluster.trackers ?? []).map((one) => ({
    id: one.id, isThis: one.isThis, isUp: one.role !== "down",
    origin: one.isThis ? location.origin : origin(one.report?.console),
})));

const places = (text) => (text ?? "").split(",").filter((one) => /^[\w.:[\]-]{1,100}$/.test(one)).slice(0, 32);
const tried = () => places(route.value.query.tried);

/** Those that are left to be tried, the next after this one first. */
function candidates() {
    const mine = consoles.value.find((one) => one.isThis)?.id ?? 0;
    const left = consoles.value.filter((one) =>
        !one.isThis && one.origin && one.origin !== location.origin && !tried().includes(new URL(one.origin).host));
    return left.sort((a, b) => b.isUp - a.isUp || (a.id < mine) - (b.id < mine) || a.id - b.id);
}

/** Whether to go there is better than to stay: a machine without a network reaches itself alone. */
const isWithinReach = (one) => navigator.onLine || isLoopback(new URL(one.origin).hostname);

/** The same page at another console. */
export function there(target) {
    const [path, query = ""] = location.hash.replace(/^#/, "").split("?");
    const parameters = new URLSearchParams(query);
    parameters.set("tried", [...tried(), location.host].join(","));
    return `${target}/#${path || "/"}?${parameters}`;
}

const lostFor = () => {
    tick.value;
    return link.value.phase === "lost" ? (Date.now() - link.value.since) / 1000 : 0;
};

function banner() {
    const left = computed(candidates);
    const mine = state.peek()?.status.node.id;
    const words = () => {
        const next = left.value[0];
        if (!next) {
            return consoles.value.length > 1
                ? "No other console is left to be tried; this one is asked again and again."
                : "No other console is known; this one is asked again and again.";
        }
        if (stay.value || isBusy()) return "It is asked again and again. Or go on at another:";
        return `Going on at tracker ${next.id}’s in ${Math.max(Math.ceil(moveAfter - lostFor()), 0)} s, or now:`;
    };
    return h("div.notice.bad", { role: "alert", id: "moving" },
        h("strong", null, mine ? `Tracker ${mine}’s console does not answer.` : "The console does not answer."), " ",
        h("span", { "aria-live": "off" }, words),
        list(h("span.links"), () => left.value, (one) => one.id, (one, id) =>
            h("a.button", { href: () => there(one.value.origin) }, `Tracker ${id}`)),
        h("button.quiet", { type: "button", hidden: () => stay.value || !left.value.length,
            onclick: () => (stay.value = true) }, "Stay here"));
}

/** Watches the connection, shows where else to go, and goes. */
export function watch() {
    if (tried().length) {
        tell(h("span", null, "The console at ", named(tried().at(-1)), " did not answer; this one does."), "warn");
    }
    const isShown = computed(() => lostFor() >= showAfter);
    effect(() => isShown.value && byId("notices").prepend(banner()));
    effect(() => !isShown.value && byId("moving")?.remove());
    effect(() => {
        if (link.value.phase === "live") stay.value = false;
        if (lostFor() < moveAfter || link.value.failures < 3 || stay.value) return;
        const next = candidates()[0];
        if (next && !isBusy() && isWithinReach(next)) location.assign(there(next.origin));
    });
    // What was tried is forgotten once this console has proved itself.
    effect(() => {
        if (link.value.phase !== "live") return;
        setTimeout(() => link.peek().phase === "live" && route.peek().query.tried && look({ tried: null }), settled);
    });
}
