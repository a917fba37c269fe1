// SPDX-License-Identifier: BSD-3-Clause
"use strict";
(function () {
  const data = JSON.parse(document.getElementById("data").textContent);
  const ROW = 62;
  const by = (id) => document.getElementById(id);

  function make(tag, attributes, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {}))
      if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : value);
    for (const child of children.flat(9)) if (child !== null && child !== undefined && child !== "") element.append(child);
    return element;
  }
  function drawn(tag, attributes, ...children) {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  }

  const place = (site) => (site && site.file ? site.file + ":" + site.line : site && site.function) || "?";
  const findings = data.findings.map((finding, number) => {
    const site = finding.sites[0] || {};
    const point = finding.crash_point;
    return {
      finding, number, file: site.file || "?", severity: finding.severity, kind: finding.oracle ? "custom/" + finding.oracle : finding.kind,
      point: point ? (point.file || "?") + ":" + point.line : "",
      hidden: finding.suppressed || finding.baseline || finding.confirmed === false,
      words: [finding.id, finding.kind, finding.message, finding.oracle, ...finding.sites.map((s) => place(s) + " " + s.function)].join(" ").toLowerCase(),
    };
  });

  /* ---- filters ---- */

  const filters = ["kind", "severity", "file", "point"];
  let shown = [];
  let selected = -1;

  function counted(key, list) {
    const counts = new Map();
    for (const entry of list) if (entry[key]) counts.set(entry[key], (counts.get(entry[key]) || 0) + 1);
    return [...counts].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
  }
  function offer(key, all) {
    const box = by(key);
    box.append(make("option", { value: "" }, all));
    for (const [value, count] of counted(key, findings)) box.append(make("option", { value }, value + " (" + count + ")"));
    box.addEventListener("change", refilter);
  }
  function refilter() {
    const words = by("text").value.toLowerCase().split(/\s+/).filter(Boolean);
    const wanted = filters.map((key) => [key, by(key).value]).filter((pair) => pair[1]);
    const hidden = by("hidden").checked;
    shown = findings.filter((entry) => (hidden || !entry.hidden) && wanted.every(([key, value]) => entry[key] === value) &&
      words.every((word) => entry.words.includes(word)));
    by("count").textContent = shown.length + " of " + findings.length + " findings";
    by("space").style.height = shown.length * ROW + "px";
    by("list").scrollTop = 0;
    select(shown.length ? 0 : -1, false);
  }

  /* ---- the list: only what can be seen is there ---- */

  function draw() {
    const list = by("list");
    const first = Math.max(0, Math.floor(list.scrollTop / ROW) - 4);
    const last = Math.min(shown.length, Math.ceil((list.scrollTop + list.clientHeight) / ROW) + 4);
    const rows = [];
    for (let i = first; i < last; i++) {
      const { finding, kind, severity } = shown[i];
      const row = make("div", { class: "row", role: "option", id: "row" + i, "aria-selected": i === selected ? "true" : "false",
        "aria-posinset": i + 1, "aria-setsize": shown.length },
        make("div", { class: "message" }, make("span", { class: "tag " + severity }, kind), finding.message),
        make("div", { class: "place" }, finding.id + " · " + place(finding.sites[0]) + (finding.count > 1 ? " · " + finding.count + " times" : "")));
      row.style.top = i * ROW + "px";
      row.addEventListener("click", () => select(i, true));
      rows.push(row);
    }
    by("space").replaceChildren(...rows);
    if (selected >= 0) list.setAttribute("aria-activedescendant", "row" + selected);
    else list.removeAttribute("aria-activedescendant");
  }
  function select(i, follow) {
    selected = i;
    const list = by("list");
    if (i >= 0 && follow) {
      if (i * ROW < list.scrollTop) list.scrollTop = i * ROW;
      else if ((i + 1) * ROW > list.scrollTop + list.clientHeight) list.scrollTop = (i + 1) * ROW - list.clientHeight;
    }
    draw();
    show(i >= 0 ? shown[i].finding : null);
    if (i >= 0 && follow) history.replaceState(null, "", "#" + shown[i].finding.id);
  }
  function onkey(event) {
    const page = Math.max(1, Math.floor(by("list").clientHeight / ROW) - 1);
    const steps = { ArrowDown: 1, ArrowUp: -1, j: 1, k: -1, PageDown: page, PageUp: -page, Home: -shown.length, End: shown.length };
    if (!(event.key in steps) || !shown.length) return;
    event.preventDefault();
    select(Math.min(shown.length - 1, Math.max(0, selected + steps[event.key])), true);
  }

  /* ---- one finding ---- */

  function source(site, what) {
    const lines = data.sources[site.path] || data.sources[site.file];
    if (!lines) return make("p", {}, what + ": ", make("code", {}, place(site)), site.function ? " (" + site.function + ")" : "");
    const rows = [];
    for (let number = site.line - 4; number <= site.line + 4; number++)
      if (lines[number] !== undefined)
        rows.push(make("tr", { class: number === site.line ? "marked" : null }, make("td", { class: "number" }, String(number)),
          make("td", {}, lines[number] || " "), number === site.line ? make("td", { class: "soft" }, "← " + what) : null));
    return make("div", { class: "source mono", tabindex: "0", role: "region", "aria-label": what + " at " + place(site) },
      make("table", {}, make("caption", {}, make("strong", {}, what), " at " + place(site) + (site.function ? " in " + site.function : "") +
        (site.thread ? ", thread " + site.thread : "")), make("tbody", {}, rows)));
  }
  function stack(site, what) {
    if (!site.stack || site.stack.length < 2) return null;
    return make("details", {}, make("summary", {}, "Call stack of the " + what),
      make("pre", { class: "box" }, site.stack.map((f, i) => (i ? "by " : "at ") + f.function + " (" + (f.file ? f.file + ":" + f.line : f.module || "?") + ")").join("\n")));
  }
  const roles = { crash: "the recovery fails here", store: "store", load: "load by the recovery", flush: "flush", fence: "fence", tx: "transaction", lock: "lock", recovery: "recovery" };

  function timeline(t) {
    const threads = [...new Set(t.events.map((e) => e.thread))].sort((a, b) => a - b);
    const x = (i) => 110 + i * 46;
    const y = (thread) => 40 + threads.indexOf(thread) * 54;
    const at = new Map(t.events.map((e, i) => [e.number, i]));
    const crash = t.events.filter((e) => e.number < t.crash).length;
    const width = x(t.events.length) + 60, height = 60 + threads.length * 54;
    const svg = drawn("svg", { width, height, viewBox: "0 0 " + width + " " + height, role: "img", "aria-label": "Timeline; the table below says the same" });
    for (const thread of threads) {
      svg.append(drawn("line", { x1: 90, x2: width - 20, y1: y(thread), y2: y(thread), stroke: "var(--line)" }),
        drawn("text", { x: 10, y: y(thread) + 4 }, "thread " + thread));
    }
    t.events.forEach((e, i) => {
      if (e.kind !== "logged") return;
      const end = t.events.findIndex((other, k) => k > i && other.thread === e.thread && other.kind === "transaction ends");
      svg.append(drawn("rect", { x: x(i), y: y(e.thread) - 22, width: (end < 0 ? width - 20 : x(end)) - x(i), height: 44, rx: 6, fill: "var(--mark)" }));
    });
    t.events.forEach((e, i) => {
      const cx = x(i), cy = y(e.thread);
      if (e.kind === "store") {
        const end = e.settled !== null && at.has(e.settled) ? x(at.get(e.settled)) : width - 20;
        svg.append(drawn("rect", { x: cx, y: cy - 4, width: Math.max(6, end - cx), height: 8, rx: 4, fill: "var(--store)", opacity: e.settled === null ? 0.45 : 0.25 }),
          drawn("circle", { cx, cy, r: 8, fill: e.certain ? "var(--good)" : "var(--store)" }));
      } else if (e.kind === "fence") svg.append(drawn("rect", { x: cx - 2, y: cy - 18, width: 4, height: 36, fill: "var(--fence)" }));
      else svg.append(drawn("rect", { x: cx - 6, y: cy - 6, width: 12, height: 12, fill: "var(--flush)", transform: "rotate(45 " + cx + " " + cy + ")" }));
      svg.append(drawn("text", { x: cx, y: cy - 16, "text-anchor": "middle" }, String(i + 1)));
    });
    if (t.crash !== null) {
      const cx = x(crash) - 23;
      svg.append(drawn("line", { x1: cx, x2: cx, y1: 8, y2: height - 14, stroke: "var(--crash)", "stroke-width": 2, "stroke-dasharray": "6 3" }),
        drawn("text", { x: cx + 4, y: height - 6 }, "crash"));
    }
    const rows = t.events.map((e, i) => make("tr", {}, make("td", {}, String(i + 1)), make("td", {}, e.kind), make("td", {}, String(e.thread)),
      make("td", {}, e.line || ""), make("td", {}, place(e.site)), make("td", {}, e.kind !== "store" ? "" :
        e.number >= t.crash && t.crash !== null ? "after the crash" : e.certain ? "persistent at the crash" :
          e.settled === null ? "never certain to be persistent" : "not certain to be persistent at the crash")));
    return [make("h3", {}, "Timeline of the cache line" + (t.lines.length > 1 ? "s " : " ") + t.lines.join(", ")), make("div", { class: "timeline", tabindex: "0" }, svg),
      make("p", { class: "soft" }, "A bar reaches from a store to where it is certain to be persistent. ● store  ◆ flush and others  ▮ fence; a band is a transaction that has logged some of the line."),
      t.versions > 1 ? make("p", {}, "After this crash the recovery could find " + t.versions + " versions of the line.") : null,
      make("details", {}, make("summary", {}, "The same as a table"), make("table", { class: "plain" },
        make("thead", {}, make("tr", {}, ["", "event", "thread", "line", "place", ""].map((h) => make("th", {}, h)))), make("tbody", {}, rows)))];
  }

  const text = (pieces) => pieces.map((p) => p.kind + (p.name ? " " + p.name : "") + " " +
    JSON.stringify((p.hex.match(/../g) || []).map((h) => String.fromCharCode(parseInt(h, 16))).join(""))).join(", ");

  function show(finding) {
    const detail = by("detail");
    if (!finding) {
      detail.replaceChildren(make("p", {}, findings.length ? "Nothing fits the filters." : "Nothing was found."));
      return;
    }
    const parts = [make("h2", { id: "heading" }, make("span", { class: "tag " + finding.severity }, finding.kind), finding.message),
      make("p", { class: "soft" }, finding.id + " · " + finding.severity + (finding.count > 1 ? " · " + finding.count + " times" : "") +
        (finding.object ? " · " + (finding.object.field || finding.object.map || "") : "") + " · fingerprint " + finding.fingerprint +
        (finding.suppressed ? " · suppressed" : "") + (finding.baseline ? " · known from the baseline" : "") + (finding.confirmed === false ? " · not confirmed" : ""))];
    finding.sites.forEach((site) => parts.push(source(site, roles[site.role] || site.role || "place"), stack(site, roles[site.role] || site.role || "place")));
    if (finding.crash_point)
      parts.push(make("h3", {}, "Crash point " + finding.crash_point.number + " of " + finding.crash_point.of), source(finding.crash_point, "crash"));
    if (finding.timeline) parts.push(timeline(finding.timeline));
    if (finding.witness && finding.witness.output) parts.push(make("h3", {}, "The recovery printed"), make("pre", { class: "box" }, finding.witness.output));
    if (finding.input) parts.push(make("h3", {}, "Input"), make("pre", { class: "box" }, text(finding.input)));
    if (finding.recovery_input) parts.push(make("h3", {}, "Input of the recovery"), make("pre", { class: "box" }, text(finding.recovery_input)));
    if (finding.fix) parts.push(make("h3", {}, "What to do"), make("pre", { class: "box", id: "fix" }, typeof finding.fix === "string" ? finding.fix : finding.fix.text || JSON.stringify(finding.fix)));
    if (finding.again) parts.push(make("h3", {}, "To see it again"), make("pre", { class: "box", id: "again" }, finding.again));
    if (data.explanations[finding.kind]) parts.push(make("details", {}, make("summary", {}, "What " + finding.kind + " means"), make("p", {}, data.explanations[finding.kind])));
    detail.replaceChildren(...parts.flat(9).filter(Boolean));
    detail.scrollTop = 0;
  }

  /* ---- overview ---- */

  function table(title, key) {
    const rows = counted(key, findings).slice(0, 20).map(([value, count]) => {
      const link = make("button", { type: "button" }, value);
      link.addEventListener("click", () => { by(key).value = value; refilter(); });
      return make("tr", {}, make("td", {}, link), make("td", {}, String(count)));
    });
    return rows.length ? make("div", {}, make("h3", {}, title), make("table", { class: "plain" }, make("tbody", {}, rows))) : null;
  }
  function begin() {
    const s = data.stats;
    by("title").textContent = "perdure " + data.engine + ": " + data.command.join(" ");
    document.title = data.findings.length + " findings: " + data.command.join(" ");
    by("summary").textContent = findings.filter((f) => !f.hidden).length + " findings, " + (data.complete ? "complete" : "not complete") + " · " +
      [s.crash_points && s.crash_points + " crash points", s.executions > 1 && s.executions + " executions", s.paths && s.paths + " paths",
        s.stores && s.stores + " stores"].filter(Boolean).join(", ");
    offer("kind", "all kinds");
    offer("severity", "all severities");
    offer("file", "all files");
    offer("point", "all crash points");
    const columns = [table("By kind", "kind"), table("By severity", "severity"), table("By source file", "file"), table("By crash point", "point")];
    if (data.limits.length) columns.push(make("div", {}, make("h3", {}, "Limits"), make("ul", {}, data.limits.map((l) => make("li", {}, l)))));
    by("columns").append(...columns.filter(Boolean));
    by("text").addEventListener("input", refilter);
    by("hidden").addEventListener("change", refilter);
    by("list").addEventListener("scroll", draw);
    by("list").addEventListener("keydown", onkey);
    const place_main = () => {
      document.documentElement.style.setProperty("--top", by("list").parentElement.offsetTop + "px");
      draw();
    };
    window.addEventListener("resize", place_main);
    by("overview").addEventListener("toggle", place_main);
    refilter();
    place_main();
    const follow = () => {
      const i = shown.findIndex((entry) => "#" + entry.finding.id === location.hash);
      if (i >= 0) select(i, true);
    };
    window.addEventListener("hashchange", follow);
    follow();
  }
  begin();
})();
