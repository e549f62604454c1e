// Makes pages quicker where scripts run; every page works without it.
"use strict";

// "Copy link" follows its link where nothing can be copied: the address bar then holds it.
document.addEventListener("click", (event) => {
  const link = event.target.closest("a.copy");
  if (!link || !navigator.clipboard || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  navigator.clipboard.writeText(link.href).then(
    () => {
      const said = link.textContent;
      link.textContent = "Copied";
      setTimeout(() => { link.textContent = said; }, 1500);
    },
    () => { location.href = link.href; },
  );
});

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
