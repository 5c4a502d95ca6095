"use strict";
// Tooltips: the text is in data-tip; charts also carry it in words, so nothing is lost without a pointer.
const tip = document.getElementById("tip");
document.addEventListener("pointerover", (event) => {
  const hit = event.target.closest("[data-tip]");
  tip.hidden = !hit;
  if (!hit) return;
  tip.textContent = hit.dataset.tip;
  const left = Math.min(event.clientX + 12, innerWidth - tip.offsetWidth - 4);
  const top = event.clientY + 18 + tip.offsetHeight > innerHeight ? event.clientY - tip.offsetHeight - 8 : event.clientY + 18;
  tip.style.left = Math.max(4, left) + "px";
  tip.style.top = top + "px";
});
document.addEventListener("keydown", (event) => { if (event.key === "Escape") tip.hidden = true; });
document.addEventListener("scroll", () => { tip.hidden = true; }, { passive: true });
// Sorting: by data-v where a cell has one, by text otherwise; cells without a value stay last.
const key = (row, column) => {
  const cell = row.cells[column];
  if (!("v" in cell.dataset)) return cell.textContent;
  return cell.dataset.v === "" ? null : Number(cell.dataset.v);
};
for (const table of document.querySelectorAll("table.sortable")) {
  [...table.tHead.rows[0].cells].forEach((header, column) => {
    header.querySelector("button")?.addEventListener("click", () => {
      const sign = header.getAttribute("aria-sort") === "ascending" ? -1 : 1;
      for (const other of table.querySelectorAll("th[aria-sort]")) other.removeAttribute("aria-sort");
      header.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
      const body = table.tBodies[0];
      const rows = [...body.rows].sort((a, b) => {
        const [x, y] = [key(a, column), key(b, column)];
        if (x === null || y === null) return (x === null) - (y === null);
        return sign * (typeof x === "number" ? x - y : x.localeCompare(y));
      });
      body.append(...rows);
    });
  });
}
