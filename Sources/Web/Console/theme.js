// Light or dark, before anything is painted: as chosen by the switch (kept in this browser), else as the system says.
// A classic script, so that it runs before the page is drawn.
(() => {
    let chosen = null;
    try {
        chosen = localStorage.getItem("theme");
    } catch {
        // Without storage the system decides.
    }
    if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
})();
