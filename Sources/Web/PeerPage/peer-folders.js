// The folders and files below the peer's directory, to choose what is shared: open a folder, take it or a file in it.

import { get } from "/console/api.js";
import { h, list, named } from "/console/dom.js";
import { bytes, count, day } from "/console/format.js";
import { look, route } from "/console/route.js";
import { effect, signal } from "/console/signals.js";
import { icon } from "/console/widgets.js";
import { settings } from "./peer-stream.js";

const joined = (path, name) => (path ? `${path}/${name}` : name);

/** The address holds the folder that is open, and what is taken: `?in=photos&share=photos/2026`. */
export const taken = () => route.value.query.share ?? null;

export const take = (path) => look({ share: path });

export function folderList() {
    const told = signal(null);
    const problem = signal("");
    const path = () => route.value.query.in ?? "";
    const learn = async (where) => {
        try {
            const answer = await get("folders", { path: where });
            if (where !== path()) return;
            [told.value, problem.value] = [answer, ""];
        } catch (refusal) {
            if (where === path()) [told.value, problem.value] = [{ path: where, entries: [] }, refusal.message];
        }
    };
    let shown = null;
    effect(() => {
        if (shown === path()) return;
        shown = path();
        learn(shown);
    });
    const open = (where) => look({ in: where });
    const rootName = () => (settings.value?.directory ?? "").split("/").filter(Boolean).at(-1) ?? "the directory";
    const steps = () => path().split("/").filter(Boolean);
    const takeButton = (where, what) => h("button.take", { type: "button", onclick: () => take(where),
        "aria-pressed": () => String(taken() === where), "aria-label": `Share ${what}`.slice(0, 200) },
        () => (taken() === where ? "✓ Chosen" : "Share"));
    return h("div.folders", null,
        h("nav.steps", { "aria-label": "Folder that is open" }, () => [
            h("button.quiet", { type: "button", onclick: () => open(null) }, icon("folder"), named(rootName(), 60)),
            ...steps().flatMap((name, at) => [h("span.muted", { "aria-hidden": "true" }, "/"),
                h("button.quiet", { type: "button", onclick: () => open(steps().slice(0, at + 1).join("/")) },
                    named(name, 60))]),
            h("button.quiet.again", { type: "button", onclick: () => learn(path()) }, "Look again"),
        ]),
        h("p.problem", { role: "alert" }, () => problem.value),
        h("div.folder-box", { tabindex: "-1" },
            list(h("ul", { "aria-label": "Folders and files" }), () => told.value?.entries ?? [],
                (one) => `${told.peek().path}/${one.name}`, (one) => {
                    const { name, isFolder } = one.peek();
                    const where = joined(told.peek().path, name);
                    return h("li", { class: () => ({ taken: taken() === where }) },
                        isFolder ? h("button.link.entry", { type: "button", onclick: () => open(where) },
                            icon("folder"), h("span", null, named(name, 200)))
                            : h("span.entry", null, icon("file"), h("span", null, named(name, 200))),
                        h("span.muted.wide", null, () => day(one.value.modifiedAt)),
                        h("span.muted.entry-size", null, () => (isFolder ? "" : bytes(one.value.byteCount))),
                        takeButton(where, name));
                }),
            h("p.muted.entry-none", { hidden: () => !told.value || told.value.entries.length > 0 || problem.value !== "" },
                "This folder is empty."),
            h("p.muted.entry-none", { hidden: () => told.value !== null }, "Loading …")),
        h("p.muted", { hidden: () => !told.value?.isCut },
            () => `The folder has more; the first ${count(told.value?.entries.length)} are shown.`));
}
