// Makes pages quicker where scripts run; every page works without it.
"use strict";

// Copies, and says so on what was clicked.
function copy(text, clicked, otherwise) {
  navigator.clipboard.writeText(text).then(
    () => {
      const said = clicked.textContent;
      clicked.textContent = "Copied";
      setTimeout(() => { clicked.textContent = said; }, 1500);
    },
    otherwise,
  );
}

// "Copy link" follows its link where nothing can be copied: the address bar then holds it.
document.addEventListener("click", (event) => {
  const link = event.target.closest("a.copy");
  if (!link || !navigator.clipboard || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  copy(link.href, link, () => { location.href = link.href; });
});

// The list of stores covers the page: Escape closes it, and so does going on to what is behind it.
for (const list of document.querySelectorAll(".switcher")) {
  list.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !list.open) return;
    list.open = false;
    list.querySelector("summary").focus();
  });
  list.addEventListener("focusout", (event) => {
    if (event.relatedTarget && !list.contains(event.relatedTarget)) list.open = false;
  });
}

// A command is selected whole by a click; where scripts may copy, a button does both.
for (const command of navigator.clipboard ? document.querySelectorAll(".command") : []) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "Copy";
  const code = command.querySelector("code");
  button.addEventListener("click", () => copy(code.textContent, button, () => getSelection().selectAllChildren(code)));
  command.append(button);
}

// What scrolls is a stop for the keyboard, which then scrolls it; what does not is none on its way. Whether it
// does is known when it is shown, which for most of a transcript is when its fold is opened.
const boxes = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    const scrolls = target.scrollHeight > target.clientHeight || target.scrollWidth > target.clientWidth;
    if (scrolls) target.tabIndex = 0;
    else target.removeAttribute("tabindex");
  }
});
for (const box of document.querySelectorAll(".said pre, .ledger-markdown table")) boxes.observe(box);

// A message inside a fold is where the link to it leads. To anything else the browser has scrolled by itself, so that
// the content begins at the top and what has the focus next is seen.
function reveal() {
  const target = location.hash.length > 1 ? document.getElementById(location.hash.slice(1)) : null;
  const shown = target || document.querySelector(".message.target, .result.target");
  if (!shown) return;
  const folds = [];
  for (let fold = shown.closest("details"); fold; fold = fold.parentElement.closest("details")) folds.push(fold);
  for (const fold of folds) fold.open = true;
  if (folds.length || shown.matches(".message, .result")) shown.scrollIntoView({ block: "center" });
}
window.addEventListener("hashchange", reveal);
if (document.querySelector(".transcript")) reveal();
