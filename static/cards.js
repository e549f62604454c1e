// Fetches the figures of the cards that the index shows without them. Without this script a link does it.
"use strict";

for (const place of document.querySelectorAll("[data-figures]")) {
  const offer = [...place.childNodes];
  place.replaceChildren("Adding up the last 30 days \u2026");
  fetch(place.dataset.figures)
    .then((answer) => (answer.ok ? answer.text() : Promise.reject(new Error(answer.statusText))))
    .then((html) => {
      // Made by the server, which has escaped what comes from the store.
      place.closest("li").innerHTML = html;
    })
    .catch(() => place.replaceChildren(...offer));
}
