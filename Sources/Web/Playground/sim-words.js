// The words of a run and of a link: what is run, and how it is looked at. Pure.
//
//     #sim?seed=17&profile=paxos&if=412.drop.9981&step=430&v=5cae49b81f0d220f
//
// What the page does not know itself belongs to the run, and goes to the engine as it is: that refuses what it does not
// know with a sentence.

/** The parts of a link that say how a run is looked at. */
const ofPage = ["at", "step", "v", "from", "until", "message", "hide", "lanes", "search", "view", "tale", "beside"];

/** A text of `key=value` joined by `&`, from pairs; only what must be escaped is. */
export function joined(pairs) {
    return pairs.filter(([, value]) => value !== null && value !== undefined && value !== "")
        .map(([key, value]) => `${escaped(key)}=${escaped(value)}`).join("&");
}

const escaped = (text) => encodeURIComponent(text).replaceAll("%2C", ",").replaceAll("%3A", ":").replaceAll("%2F", "/");

/** The words of the run that a link's query names. */
export const wordsOf = (query) => joined(Object.entries(query).filter(([key]) => !ofPage.includes(key)));

/** The words' parts, by name. */
export const parts = (words) => Object.fromEntries(new URLSearchParams(words.replaceAll("+", "%2B")));

/** The what-ifs of a run, as texts, in their order. */
export const whatIfs = (words) => (parts(words).if ?? "").split(",").filter(Boolean);

/** The same run with other what-ifs. */
export function withWhatIfs(words, all) {
    const { if: _, ...rest } = parts(words);
    return joined([...Object.entries(rest), ["if", all.join(",")]]);
}

/** The step after which a what-if is carried out. */
export const stepOf = (whatIf) => Number(whatIf.split(".")[0]);

/** What makes a step of its own. */
const isStep = (whatIf) => /\.(take\.|time$)/.test(whatIf);

/** The what-ifs of a run up to a step, and more of them there: what came later belongs to another course of things. */
export function branched(words, step, actions) {
    const before = whatIfs(words).filter((one) => stepOf(one) < step || (stepOf(one) === step && !isStep(one)));
    return withWhatIfs(words, [...before, ...[actions].flat().map((one) => `${step}.${one}`)]);
}

/** Whether the player is the network at the end of these what-ifs. */
export function isNet(words) {
    const last = whatIfs(words).filter((one) => /\.(net|auto)$/.test(one)).at(-1);
    return Boolean(last?.endsWith(".net"));
}

/** How long something lasts, in words. */
function lasting(milliseconds, never = "") {
    if (!Number(milliseconds)) return never;
    return `for ${Number(milliseconds) / 1000} s`;
}

/**
 * A what-if in a few words.
 *
 * @param names of the trackers, by place.
 */
export function told(whatIf, names) {
    const [step, action, ...rest] = whatIf.split(".");
    const name = (place) => `tracker ${names[Number(place)] ?? place}`;
    const what = {
        drop: () => "a message is lost",
        delay: () => `a message comes ${Number(rest[1]) / 1000} s later`,
        kill: () => `${name(rest[0])} dies ${lasting(rest[1], "until the world is healed")}`,
        pause: () => `${name(rest[0])} is held ${lasting(rest[1])}`,
        cut: () => `${rest[0].split("-").map((one) => names[Number(one)] ?? one).join(", ")} cut off `
            + lasting(rest[1]),
        fence: () => `${name(rest[0])} loses its bus ${lasting(rest[1])}`,
        disk: () => `${name(rest[0])}’s disk is full ${lasting(rest[1])}`,
        wake: () => `${name(rest[0])} goes on`,
        hand: () => `${name(rest[0])} is told to hand over to ${rest[1]}`,
        net: () => "you are the network",
        take: () => "a message is delivered",
        time: () => "time goes on",
        auto: () => "the network works by itself",
    }[action];
    return `${step}: ${what ? what() : `${action} ${rest.join(" ")}`}`;
}

/** The command of `tracker simulate` that does what a sweep of these words would. */
export function sweepCommand({ profile, stress, nodes, seconds }, first, last) {
    return ["tracker simulate", profile && `--profile ${profile}`, stress && `--stress ${stress}`,
        nodes && `--nodes ${nodes}`, seconds && `--seconds ${seconds}`, `--seeds ${first}..${last}`]
        .filter(Boolean).join(" ");
}
