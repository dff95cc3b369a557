// Numbers, sizes, times and spans as people read them.

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const clockSeconds = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const dayAndClock = new Intl.DateTimeFormat("en-GB",
    { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });
const yearAndClock = new Intl.DateTimeFormat("en-GB",
    { day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit" });

export const nothing = "–";

/** 1,234,567 */
export const count = (n) => (Number.isFinite(n) ? whole.format(n) : nothing);

/** 1.23 M: for axes and where room is short. */
export function short(n) {
    if (!Number.isFinite(n)) return nothing;
    const size = Math.abs(n);
    for (const [unit, name] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]]) {
        if (size >= unit) return `${trim(n / unit)} ${name}`;
    }
    return trim(n);
}

/** Three digits that mean something. */
function trim(n) {
    const size = Math.abs(n);
    return size >= 100 || Number.isInteger(n) ? n.toFixed(0) : String(Number(n.toFixed(size >= 10 ? 1 : 2)));
}

/** 4.2 GiB */
export function bytes(n) {
    if (!Number.isFinite(n)) return nothing;
    for (const [unit, name] of [[2 ** 40, "TiB"], [2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"]]) {
        if (n >= unit) return `${trim(n / unit)} ${name}`;
    }
    return `${count(n)} B`;
}

/** 0.42 ms, 1.2 s */
export function seconds(s) {
    if (!Number.isFinite(s)) return nothing;
    if (s === 0) return "0";
    if (s < 1e-3) return `${trim(s * 1e6)} µs`;
    if (s < 1) return `${trim(s * 1e3)} ms`;
    return s < 60 ? `${s.toFixed(1)} s` : span(s);
}

/** A span in its two largest units: "3 d 1 h", "4 min 2 s". */
export function span(s) {
    if (!Number.isFinite(s)) return nothing;
    const all = Math.max(Math.round(s), 0);
    const parts = [[86_400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
    const first = Math.max(parts.findIndex(([unit]) => all >= unit), 0);
    if (all < 1) return "0 s";
    const [unit, name] = parts[first];
    const rest = parts[first + 1];
    const more = rest ? Math.floor((all % unit) / rest[0]) : 0;
    return `${Math.floor(all / unit)} ${name}${more ? ` ${more} ${rest[1]}` : ""}`;
}

/** 14:02, or with the day where that is not today. */
export function since(instant) {
    const date = new Date(instant);
    if (Number.isNaN(date.getTime())) return nothing;
    return date.toDateString() === new Date().toDateString() ? clock.format(date) : dayAndClock.format(date);
}

/** 14 Nov 2027, 14:02 */
export function day(instant) {
    const date = new Date(instant);
    return Number.isNaN(date.getTime()) ? nothing : yearAndClock.format(date);
}

/** 14:02:07.123 */
export function exact(instant) {
    const date = new Date(instant);
    if (Number.isNaN(date.getTime())) return nothing;
    return `${clockSeconds.format(date)}.${String(date.getMilliseconds()).padStart(3, "0")}`;
}

/** 14:02:07 */
export const time = (milliseconds) => clockSeconds.format(new Date(milliseconds));

/** "1 tracker", "2 trackers" */
export const counted = (n, noun) => `${count(n)} ${noun}${n === 1 ? "" : "s"}`;

/** "1, 2 and 3" */
export function listed(items) {
    return items.length < 2 ? items.join("") : `${items.slice(0, -1).join(", ")} and ${items.at(-1)}`;
}
