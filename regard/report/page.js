"use strict";
// What every page does: tips beside the pointer, lines that stand out, panels behind buttons.
const page = {
  tips: [],  // functions (element, event) -> what the tip shows there, or null; a page's own script adds to them
  choose(button) {
    for (const other of button.parentElement.querySelectorAll("button")) other.classList.toggle("on", other === button);
  },
};
(() => {
  const tip = document.getElementById("tip");
  const place = (event) => {
    const box = tip.getBoundingClientRect();
    tip.style.left = Math.max(6, Math.min(event.clientX + 14, innerWidth - box.width - 8)) + "px";
    const below = event.clientY + 18;
    tip.style.top = (below + box.height > innerHeight ? event.clientY - box.height - 12 : below) + "px";
  };
  page.tips.push((target) => target.closest("[data-tip]")?.dataset.tip);
  addEventListener("pointermove", (event) => {
    const target = event.target instanceof Element ? event.target : null;
    let shown = null;
    for (const content of page.tips) shown ||= target && content(target, event);
    if (shown) tip.replaceChildren(shown);
    tip.hidden = !shown;
    if (shown) place(event);
  });

  // Charts: the line or the name under the pointer stands out.
  for (const chart of document.querySelectorAll(".chart")) {
    chart.addEventListener("pointerover", (event) => {
      const series = event.target.closest("[data-series]");
      chart.classList.toggle("alone", Boolean(series));
      for (const part of chart.querySelectorAll("[data-series]")) {
        part.classList.toggle("on", Boolean(series) && part.dataset.series === series.dataset.series);
      }
    });
    chart.addEventListener("pointerleave", () => chart.classList.remove("alone"));
  }

  for (const button of document.querySelectorAll("[data-tab]")) {
    button.addEventListener("click", () => {
      page.choose(button);
      for (const other of button.parentElement.querySelectorAll("[data-tab]")) {
        document.getElementById(other.dataset.tab).hidden = other !== button;
      }
    });
  }
})();
