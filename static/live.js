// Renews a page when its store changes. Every page works without this file; with it there is a button,
// and while it is pressed the page asks every two seconds whether anything has changed. A page that
// nobody looks at does not ask.
(() => {
  "use strict";

  const PAUSE_MS = 2000;
  const KEY = "state-ledger-live";
  const place = document.querySelector("[data-live]");
  if (!place) return;
  const button = place.querySelector("button");
  const told = place.querySelector("[role=status]");
  let version = place.dataset.version;
  let timer = 0;
  let asking = false;

  const on = () => button.getAttribute("aria-pressed") === "true";

  function remembered() {
    try {
      return localStorage.getItem(KEY) === "on";
    } catch {
      return false; // where a browser keeps nothing, the button is pressed anew on each page
    }
  }

  function press(pressed) {
    button.setAttribute("aria-pressed", String(pressed));
    try {
      localStorage.setItem(KEY, pressed ? "on" : "off");
    } catch {
      // As above.
    }
    clearTimeout(timer);
    if (pressed) look();
    else told.replaceChildren();
  }

  async function look() {
    clearTimeout(timer);
    if (asking || !on() || document.hidden) return;
    asking = true;
    try {
      const answer = await fetch(place.dataset.live, { headers: { "If-None-Match": `"${version}"` }, cache: "no-store" });
      if (answer.status === 200) await renew((await answer.json()).version);
      else if (answer.status !== 304) told.replaceChildren("This page cannot be renewed: reload it.");
    } catch {
      told.replaceChildren("The server does not answer. Asking again \u2026");
    } finally {
      asking = false;
      if (on()) timer = setTimeout(look, PAUSE_MS);
    }
  }

  async function renew(changed) {
    const answer = await fetch(location.href, { headers: { Accept: "text/html" }, cache: "no-store" });
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    const shown = document.getElementById("content");
    const news = fresh.getElementById("content");
    if (!answer.ok || !news) {
      told.replaceChildren("This page cannot be renewed: reload it.");
      version = changed;
      return;
    }
    // As of when the page was made, which may be later than what was asked for.
    version = fresh.querySelector("[data-live]")?.dataset.version ?? changed;
    match(shown, news);
    document.title = fresh.title;
    told.replaceChildren(`Renewed at ${new Date().toLocaleTimeString()}`);
  }

  // Makes `shown` the same as `news` and touches nothing that is the same already: what has the focus,
  // is scrolled to, or was opened by the reader stays.
  function match(shown, news) {
    const old = [...shown.childNodes];
    const next = [...news.childNodes];
    let at = 0;
    for (const fresh of next) {
      let same = at;
      while (same < old.length && !alike(old[same], fresh)) same += 1;
      if (same === old.length) {
        shown.insertBefore(document.importNode(fresh, true), old[at] ?? null);
        continue;
      }
      for (; at < same; at += 1) old[at].remove();
      renewNode(old[at], fresh);
      at += 1;
    }
    for (; at < old.length; at += 1) old[at].remove();
  }

  function alike(one, other) {
    return one.nodeName === other.nodeName && (one.id ?? "") === (other.id ?? "");
  }

  function renewNode(shown, fresh) {
    if (shown.nodeType !== Node.ELEMENT_NODE) {
      if (shown.nodeValue !== fresh.nodeValue) shown.nodeValue = fresh.nodeValue;
      return;
    }
    if (shown.matches("[data-live], input, select, textarea")) return;
    for (const { name } of [...shown.attributes]) {
      if (name !== "open" && !fresh.hasAttribute(name)) shown.removeAttribute(name);
    }
    for (const { name, value } of fresh.attributes) {
      if (name !== "open" && shown.getAttribute(name) !== value) shown.setAttribute(name, value);
    }
    match(shown, fresh);
  }

  button.hidden = false;
  button.addEventListener("click", () => press(!on()));
  document.addEventListener("visibilitychange", look);
  if (remembered()) press(true);
})();
