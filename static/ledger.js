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

// A command is selected whole by a click; where scripts may copy, a button does both.
for (const command of navigator.clipboard ? document.querySelectorAll(".command") : []) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "Copy";
  const code = command.querySelector("code");
  button.addEventListener("click", () => copy(code.textContent, button, () => getSelection().selectAllChildren(code)));
  command.append(button);
}

// A message inside a fold is where the link to it leads.
function reveal() {
  const target = location.hash.length > 1 ? document.getElementById(location.hash.slice(1)) : null;
  const shown = target || document.querySelector(".message.target, .result.target");
  if (!shown) return;
  for (let fold = shown.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
  shown.scrollIntoView({ block: "center" });
}
window.addEventListener("hashchange", reveal);
if (document.querySelector(".transcript")) reveal();
