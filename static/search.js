// The search box of every page and the hits of the search page. All of it works without this file, by
// an ordinary form; with it, results come as you type and the keyboard moves between them.
(() => {
  "use strict";

  const PAUSE_MS = 160;
  const box = document.getElementById("finder");
  const here = () => document.querySelector("[data-search]");
  let timer = 0;
  let running = null;
  let counting = null;

  const isField = (element) =>
    element instanceof HTMLElement &&
    (element.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(element.tagName));

  const links = () => [...document.querySelectorAll(".hit-link")];

  // The address that the form would ask for, without fields that are empty.
  function address() {
    const url = new URL(box.form.action, location.href);
    for (const [name, value] of new FormData(box.form)) {
      if (value !== "") url.searchParams.append(name, value);
    }
    return url;
  }

  async function ask() {
    clearTimeout(timer);
    const url = address();
    if (url.href === location.href) return;
    running?.abort();
    const mine = (running = new AbortController());
    const shown = here();
    shown.setAttribute("aria-busy", "true");
    try {
      const answer = await fetch(url, { signal: mine.signal, headers: { Accept: "text/html" } });
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const fresh = page.querySelector("[data-search]");
      if (mine.signal.aborted) return;
      if (!fresh) {
        location.assign(url);
        return;
      }
      show(shown, fresh, page.title, url);
    } catch (error) {
      // An answer that a later one has overtaken is not missed; one that failed is asked for as a page.
      if (error.name !== "AbortError") location.assign(url);
    } finally {
      if (running === mine) {
        running = null;
        shown.removeAttribute("aria-busy");
      }
    }
  }

  // The region that says how many stays in the page, so that it is read out when its text changes.
  function show(shown, fresh, title, url) {
    const told = shown.querySelector("#told");
    const news = fresh.querySelector("#told");
    if (told && news) {
      told.replaceChildren(...news.childNodes);
      news.replaceWith(told);
    }
    shown.replaceChildren(...fresh.childNodes);
    document.title = title;
    history.replaceState(null, "", url);
    count();
  }

  async function count() {
    counting?.abort();
    const place = document.querySelector("[data-count]");
    if (!place) return;
    const mine = (counting = new AbortController());
    try {
      const answer = await (await fetch(place.dataset.count, { signal: mine.signal })).json();
      if (answer.ok && place.isConnected) place.replaceChildren(answer.text);
    } catch {
      // The page says how many it shows; that stays.
    }
  }

  function move(step) {
    const all = links();
    const at = all.indexOf(document.activeElement);
    const next = at + step;
    if (document.activeElement !== box && at < 0) return false;
    if (next < 0) {
      box.focus();
      box.select();
    } else if (next < all.length) {
      all[next].focus();
      all[next].closest(".hit, li, p")?.scrollIntoView({ block: "nearest" });
    }
    return true;
  }

  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "/" && box && !isField(event.target)) {
      event.preventDefault();
      box.focus();
      box.select();
    } else if (here() && (event.key === "ArrowDown" || event.key === "ArrowUp") && !event.shiftKey) {
      if (event.key === "ArrowUp" && event.target === box) return;
      if (move(event.key === "ArrowDown" ? 1 : -1)) event.preventDefault();
    }
  });

  if (!box || !here()) return;

  const soon = (event) => {
    // Half a syllable of an input method is not what is looked for.
    if (event.isComposing) return;
    clearTimeout(timer);
    timer = setTimeout(ask, PAUSE_MS);
  };
  box.addEventListener("input", soon);
  box.addEventListener("compositionend", soon);
  box.form.addEventListener("submit", (event) => {
    event.preventDefault();
    ask();
  });
  count();
})();
