// Search over `window.referenceEntries`, which stands before this text in the same file: no request is made.
(function () {
    const root = document.currentScript.dataset.root;
    const input = document.getElementById("search");
    const results = document.getElementById("results");
    const main = document.querySelector("main");
    const bare = (text) => text.toLowerCase().replace(/[^\p{L}\p{N}.]/gu, "");
    const entries = window.referenceEntries.map((entry) => ({
        ...entry, key: bare(entry.name), path: bare(entry.title), said: ` ${entry.summary.toLowerCase()}`, all: ` ${entry.words}`,
    }));

    // Points of an entry for one word of the query; 0 if the word does not occur.
    function points(entry, word) {
        const key = bare(word);
        if (!key) return 0;
        if (entry.key === key) return 100;
        if (entry.key.startsWith(key)) return 50;
        if (entry.key.includes(key)) return 30;
        if (entry.path.includes(key)) return 20;
        if (entry.said.includes(` ${word}`)) return 10;
        return entry.all.includes(` ${word}`) ? 4 : 0;
    }

    function search(query) {
        const words = query.toLowerCase().split(/\s+/).filter(Boolean);
        // A name may be typed with blanks: "track and stop".
        const joined = bare(query);
        return entries
            .map((entry) => {
                const each = words.map((word) => points(entry, word));
                const sum = each.every((value) => value > 0) ? each.reduce((a, b) => a + b, 0) / each.length : 0;
                return { entry, score: Math.max(sum, entry.key === joined ? 100 : 0) };
            })
            .filter(({ score }) => score > 0)
            .sort((a, b) => b.score - a.score || a.entry.title.length - b.entry.title.length)
            .slice(0, 50)
            .map(({ entry }) => entry);
    }
    window.referenceSearch = search;

    function element(tag, name, text) {
        const node = document.createElement(tag);
        if (name) node.className = name;
        node.textContent = text;
        return node;
    }

    function show() {
        const query = input.value.trim();
        results.hidden = !query;
        if (main) main.hidden = Boolean(query);
        if (!query) return;
        const hits = search(query);
        const count = hits.length === 50 ? "The first 50 results" : `${hits.length} result${hits.length === 1 ? "" : "s"}`;
        results.replaceChildren(element("p", "count", `${count} for "${query}".`));
        for (const hit of hits) {
            const link = element("a", "hit", "");
            link.href = root + hit.url;
            link.append(element("code", "", hit.title), element("span", "kind", hit.role), element("p", "", hit.summary));
            link.addEventListener("click", clear);
            results.append(link);
        }
        window.scrollTo(0, 0);
    }

    function clear() {
        input.value = "";
        show();
    }

    input.addEventListener("input", show);
    input.addEventListener("keydown", (event) => {
        if (event.key === "Escape") clear();
        const first = results.querySelector("a");
        if (event.key === "Enter" && first && !results.hidden) first.click();
    });
    document.addEventListener("keydown", (event) => {
        if (event.key === "/" && document.activeElement !== input) {
            event.preventDefault();
            input.focus();
        }
    });
    // A click on an entry of the contents closes them on a small screen.
    document.querySelectorAll("nav.side a").forEach((link) => {
        link.addEventListener("click", () => { document.getElementById("menu").checked = false; clear(); });
    });
    show();
})();
