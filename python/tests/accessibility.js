// A small accessibility check that runs inside the page and leaves its findings, as JSON, in <pre id="findings">.
(() => {
  const wrong = [];
  const say = (what, element) => wrong.push(what + (element ? ": " + element.outerHTML.slice(0, 120) : ""));
  if (!document.documentElement.lang) say("no language");
  if (!document.title) say("no title");
  if (document.querySelectorAll("h1").length !== 1) say("not exactly one h1");
  if (!document.querySelector("main")) say("no main");
  // Headings go down one step at a time.
  let last = 0;
  for (const h of document.querySelectorAll("h1,h2,h3,h4,h5,h6")) {
    const level = Number(h.tagName[1]);
    if (level > last + 1) say("a heading level is skipped", h);
    if (!h.textContent.trim()) say("empty heading", h);
    last = level;
  }
  const ids = [...document.querySelectorAll("[id]")].map((e) => e.id);
  ids.forEach((id, at) => { if (ids.indexOf(id) !== at) say("an id twice: " + id); });
  for (const e of document.querySelectorAll("[aria-labelledby]"))
    for (const id of e.getAttribute("aria-labelledby").split(" ")) if (!document.getElementById(id)) say("label leads nowhere", e);
  for (const e of document.querySelectorAll("a,button,[role=button]"))
    if (!e.textContent.trim() && !e.getAttribute("aria-label")) say("no name", e);
  for (const e of document.querySelectorAll("img")) if (!e.alt) say("no alternative text", e);
  for (const e of document.querySelectorAll("svg"))
    if (!e.closest("[aria-hidden=true]") && !e.parentElement.closest("svg") && (e.getAttribute("role") !== "img" || !e.querySelector("title")))
      say("a drawing without a name", e);
  for (const e of document.querySelectorAll("th")) if (!e.scope) say("a header without scope", e);
  for (const e of document.querySelectorAll("[role=region]")) if (!e.getAttribute("aria-label")) say("a region without a name", e);
  // What scrolls can be reached with the keyboard.
  for (const e of document.querySelectorAll(".scroll"))
    if (e.scrollWidth > e.clientWidth + 1 && e.tabIndex < 0) say("scrolls, but not by keyboard", e);
  if (document.documentElement.scrollWidth > innerWidth + 1) say("wider than the window by " + (document.documentElement.scrollWidth - innerWidth));
  // Contrast of text with what lies behind it, WCAG 2: 4.5, or 3 for large text.
  const parse = (text) => { const n = (text.match(/[\d.]+/g) || []).map(Number); return n.length < 3 ? null : [n[0], n[1], n[2], n.length > 3 ? n[3] : 1]; };
  const over = (top, below) => [0, 1, 2].map((i) => top[3] * top[i] + (1 - top[3]) * below[i]).concat(1);
  const behind = (element) => {
    const layers = [];
    for (let e = element; e; e = e.parentElement) layers.push(parse(getComputedStyle(e).backgroundColor));
    return layers.reverse().filter(Boolean).reduce((below, top) => over(top, below), [255, 255, 255, 1]);
  };
  const light = (c) => { const f = (v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; return 0.2126 * f(c[0]) + 0.7152 * f(c[1]) + 0.0722 * f(c[2]); };
  const seen = new Set();
  for (const e of document.querySelectorAll("body *")) {
    const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    if (!own || !e.getClientRects().length || e.closest("[hidden],script,style,title,desc")) continue;
    const style = getComputedStyle(e), inside = e.closest("svg");
    const colour = parse(inside ? style.fill : style.color), ground = behind(inside ? inside.parentElement : e);
    if (!colour) continue;
    const [a, b] = [light(over(colour, ground)), light(ground)].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05), size = parseFloat(style.fontSize);
    const needed = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700) ? 3 : 4.5;
    const key = e.tagName + e.className + ratio.toFixed(1);
    if (ratio < needed && !seen.has(key)) { seen.add(key); say("contrast " + ratio.toFixed(2) + " below " + needed, e); }
  }
  // Sorting works and moves rows.
  const table = document.querySelector("table.sortable");
  let sorted = null;
  if (table) {
    const names = () => [...table.tBodies[0].rows].map((r) => r.cells[0].textContent);
    const button = table.querySelectorAll("thead button")[1];
    button.click(); const up = names(); button.click(); const down = names();
    sorted = up.join() !== down.join() && button.closest("th").getAttribute("aria-sort") === "descending";
    if (!sorted) say("sorting does nothing");
  }
  const requests = performance.getEntriesByType("resource").map((r) => r.name);
  const out = document.createElement("pre");
  out.id = "findings";
  out.textContent = JSON.stringify({ wrong, requests, sorted, dark: matchMedia("(prefers-color-scheme: dark)").matches, width: innerWidth });
  document.body.append(out);
})();
