// Search over all pages. The index is loaded with the first key, because most readers of a page
// never search. `/` goes to the search, arrows choose, Enter opens, Escape closes.
"use strict";

(() => {
  const root = document.currentScript.dataset.root;
  const input = document.querySelector("search input");
  const found = document.getElementById("found");
  const status = found.querySelector("p");
  const list = found.querySelector("ol");
  const menu = document.getElementById("menu");
  const current = menu.querySelector("[aria-current]");
  const most = 12;
  let index;

  const load = (file) =>
    new Promise((done, failed) => {
      const script = document.createElement("script");
      script.src = root + file;
      script.onload = done;
      script.onerror = () => failed(new Error(`cannot load ${script.src}`));
      document.head.append(script);
    });

  const loadIndex = async () => {
    await Promise.all([load("minisearch.js"), load("search-index.js")]);
    const search = new MiniSearch({
      fields: ["title", "words", "summary", "text"],
      storeFields: ["page", "title", "summary", "place", "weight"],
      searchOptions: {
        boost: { title: 10, words: 8, summary: 5 },
        boostDocument: (id, term, stored) => stored.weight,
        prefix: (term) => term.length > 1,
        fuzzy: (term) => (term.length > 4 ? 0.2 : false),
        combineWith: "AND",
      },
    });
    search.addAll(window.searchDocuments);
    return search;
  };

  const row = (result) => {
    const link = document.createElement("a");
    link.href = root + result.page;
    const part = (name, text) => {
      const node = document.createElement(name);
      node.textContent = text;
      return node;
    };
    link.append(part("strong", result.title), " ", part("small", result.place));
    link.append(part("span", result.summary));
    const item = document.createElement("li");
    item.append(link);
    return item;
  };

  const close = () => {
    found.hidden = true;
    found.dataset.words = "";
    list.replaceChildren();
    status.textContent = "";
  };

  const search = async () => {
    const words = input.value.trim();
    if (!words) return close();
    index ??= loadIndex();
    const pages = await index;
    // The reader may have typed on while the index was loaded.
    if (words !== input.value.trim()) return;
    let results = pages.search(words);
    if (!results.length) results = pages.search(words, { combineWith: "OR" });
    list.replaceChildren(...results.slice(0, most).map(row));
    const shown = Math.min(results.length, most);
    status.textContent = results.length
      ? `${results.length} found${shown < results.length ? `, the best ${shown}` : ""}`
      : "Nothing found";
    found.dataset.words = words;
    found.hidden = false;
  };

  const move = (step) => {
    const links = [input, ...list.querySelectorAll("a")];
    const next = links[links.indexOf(document.activeElement) + step];
    if (next) next.focus();
  };

  document.addEventListener("keydown", (event) => {
    const searching = event.target.closest("search");
    if (event.key === "/" && !searching && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      input.focus();
      input.select();
    } else if (!searching) {
      return;
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      move(event.key === "ArrowDown" ? 1 : -1);
    } else if (event.key === "Enter" && event.target === input) {
      list.querySelector("a")?.click();
    } else if (event.key === "Escape") {
      input.value = "";
      close();
      input.focus();
    }
  });
  document.addEventListener("click", (event) => {
    if (!event.target.closest("search")) close();
    else if (event.target.closest("#found a")) close();
  });
  // A wide screen shows the menu beside the page, with its own scroll bar.
  if (current) menu.scrollTop = current.offsetTop - menu.clientHeight / 2;
  input.addEventListener("input", search);
  input.addEventListener("focus", () => {
    if (input.value) search();
  });
})();
