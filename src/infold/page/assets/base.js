"use strict";
/* What every page is made of: elements, words for numbers and times, tables, and the data.

   All text comes by textContent and all links by encodeURIComponent: a name or a value of a row is
   never read as HTML. */
const infold = { pages: {} };

infold.el = (tag, attributes, ...children) => {
  const made = document.createElement(tag);
  return infold.filled(made, attributes, children);
};

infold.svg = (tag, attributes, ...children) => {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  return infold.filled(made, attributes, children);
};

infold.filled = (made, attributes, children) => {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    made.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return made;
};

/* -- words ------------------------------------------------------------------------------------ */

infold.number = (value) => (value === null || value === undefined ? "" : value.toLocaleString("en"));

infold.signed = (value) => (value > 0 ? "+" : value < 0 ? "−" : "±") + infold.number(Math.abs(value));

infold.count = (value, noun) => `${infold.number(value)} ${noun}${value === 1 ? "" : "s"}`;

infold.percent = (part, whole) => {
  if (!whole) return "";
  const value = (100 * part) / whole;
  if (value > 0 && value < 0.1) return "under 0.1 %";
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} %`;
};

/* "2024-03-09T10:20:30.123Z" as people read it; all times are UTC. */
infold.when = (text) => (text ? text.slice(0, 16).replace("T", " ") : "never");

/* The same to the second: runs often follow each other. */
infold.clock = (text) => (text ? text.slice(0, 19).replace("T", " ") : "never");

infold.iso = (seconds) => new Date(seconds * 1000).toISOString();

infold.UNITS = { hour: 3600, day: 86400, week: 604800, month: 2629800, quarter: 7889400, year: 31557600 };

/* The name of the cell that starts at these seconds. */
infold.cell = (seconds, unit) => {
  if (seconds === null) return "ever";
  const text = infold.iso(seconds);
  if (unit === "hour") return text.slice(0, 13).replace("T", " ") + "h";
  if (unit === "month") return text.slice(0, 7);
  if (unit === "quarter") return `${text.slice(0, 4)} Q${Math.floor(Number(text.slice(5, 7)) / 3.01) + 1}`;
  if (unit === "year") return text.slice(0, 4);
  return text.slice(0, 10);
};

infold.range = ([start, end]) => {
  const day = (at) => (at === null ? "…" : infold.iso(at).slice(0, at % 86400 ? 16 : 10).replace("T", " "));
  if (start !== null && end !== null && end - start === 86400) return day(start);
  return `${day(start)} to ${day(end)}`;
};

infold.duration = (seconds) => {
  if (seconds === null || seconds === undefined) return "";
  if (seconds < 60) return `${seconds < 10 ? seconds.toFixed(2) : seconds.toFixed(1)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
  if (seconds < 172800) return `${Math.round(seconds / 360) / 10} h`;
  return `${Math.round(seconds / 86400)} days`;
};

/* How long before the data was made something happened. */
infold.ago = (text) => {
  const made = infold.project && infold.project.made_at;
  if (!text || !made) return "";
  const seconds = Math.max(0, (Date.parse(made) - Date.parse(text)) / 1000);
  return seconds < 60 ? "just now" : `${infold.duration(seconds).replace(/ \d+ s$/, "")} ago`;
};

/* -- parts of pages --------------------------------------------------------------------------- */

infold.href = (...parts) => "#/" + parts.map(encodeURIComponent).join("/");

infold.link = (text, ...parts) => infold.el("a", { href: infold.href(...parts) }, text);

infold.model = (name) => infold.link(name, "model", name);

infold.run = (id, text) => infold.link(text || id, "run", id);

infold.section = (title, ...children) =>
  infold.el("section", { "aria-label": title }, infold.el("h2", {}, title), ...children);

infold.facts = (pairs) =>
  infold.el(
    "dl",
    { class: "facts" },
    pairs
      .filter(([, value]) => value !== null && value !== undefined && value !== "")
      .map(([name, value]) => infold.el("div", {}, infold.el("dt", {}, name), infold.el("dd", {}, value)))
  );

infold.notice = (kind, ...children) => infold.el("p", { class: `notice ${kind}` }, ...children);

infold.pill = (text, kind) => infold.el("span", { class: `pill ${kind || ""}` }, text);

/* A table: columns are [title, class, value of a row]. More than `most` rows wait for a click. */
infold.table = (columns, rows, most = 50) => {
  const body = infold.el("tbody", { role: "rowgroup" });
  // The roles stay what they are where a narrow window draws cells as blocks with their titles.
  const row = (one) =>
    infold.el("tr", { role: "row" }, columns.map(([title, kind, value]) => infold.el("td", { class: kind, role: "cell", "data-title": title }, value(one))));
  body.append(...rows.slice(0, most).map(row));
  const head = infold.el("tr", { role: "row" }, columns.map(([title, kind]) => infold.el("th", { class: kind, scope: "col", role: "columnheader" }, title)));
  const full = columns.some(([, kind]) => kind === "long") || columns.length > 6;
  const shown = infold.el("div", { class: "wide" }, infold.el("table", { role: "table", class: full ? "full" : null }, infold.el("thead", { role: "rowgroup" }, head), body));
  if (rows.length <= most) return shown;
  const more = infold.el("button", { type: "button" }, `Show all ${infold.number(rows.length)}`);
  more.addEventListener("click", () => {
    body.append(...rows.slice(most).map(row));
    more.remove();
  });
  return infold.el("div", {}, shown, more);
};

/* A picture with the same as a table, which is made when somebody opens it. */
infold.figure = (picture, columns, rows) => {
  const details = infold.el("details", {}, infold.el("summary", {}, "Show as a table"));
  details.addEventListener("toggle", () => {
    if (details.open && details.children.length === 1) details.append(infold.table(columns, rows));
  });
  return infold.el("figure", {}, infold.el("div", { class: "wide" }, picture), details);
};

infold.share = (part, whole, width = 8) => {
  const bar = infold.el("span", { class: "share", "aria-hidden": "true" });
  bar.style.width = `${whole ? (width * part) / whole : 0}em`;
  return bar;
};

infold.reasons = (reasons) =>
  (reasons || []).map((one) => (one.detail ? `${one.cause}: ${one.detail}` : one.cause)).join("; ");

infold.files = (version) => {
  const files = version.files || [];
  if (!files.length) return null;
  const names = files.map((file) => (typeof file === "string" ? file : file.path));
  return names.join(", ") + (version.more_files ? ` and ${infold.number(version.more_files)} more` : "");
};

infold.ERROR_TITLE = "This cannot be shown";

infold.error = (error) =>
  infold.section(infold.ERROR_TITLE, infold.el("pre", {}, error.text || error.what || String(error)));

/* -- the data --------------------------------------------------------------------------------- */

infold.known = new Map();
infold.waiting = new Map();

/* Called by the files of an export. */
infold.arrived = (name, data) => infold.waiting.get(name)?.(data);

infold.load = (name) => {
  if (!infold.known.has(name)) {
    const exported = document.documentElement.dataset.form === "files";
    const asked = exported ? infold.fromFile(name) : infold.fromServer(name);
    infold.known.set(name, asked);
    asked.catch(() => infold.known.delete(name));
  }
  return infold.known.get(name);
};

/* For a place that can show nothing without this document: who shows the place shows the error.
   A run's own error is a text, and no error of its document. */
infold.loadOrThrow = async (name) => {
  const found = await infold.load(name);
  if (found.error?.text) throw new Error(found.error.text);
  return found;
};

infold.fromServer = async (name) => {
  let answer;
  try {
    answer = await fetch("data/" + name.split("/").map(encodeURIComponent).join("/"));
  } catch {
    throw new Error("The server of this page has ended. Start it again: infold ui");
  }
  if (!answer.ok) throw new Error(answer.status === 404 ? `There is no ${name}.` : `The server answered ${answer.status}.`);
  return answer.json();
};

infold.fromFile = (name) =>
  new Promise((done, failed) => {
    const file = infold.exported[name];
    if (!file) return failed(new Error(`This export has no ${name}.`));
    infold.waiting.set(name, done);
    const script = infold.el("script", { src: file });
    script.addEventListener("error", () => failed(new Error(`${file} is missing.`)));
    document.head.append(script);
  });
