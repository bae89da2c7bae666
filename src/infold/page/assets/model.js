"use strict";
/* One model: why its rows changed, its calendar, what it reads, and its definition. */

infold.pages.model = async (main, name) => {
  const model = await infold.load(`model/${name}`);
  if (model.error) return main.replaceChildren(infold.error(model.error));
  // The explanation looks at the whole project; the page is there before it.
  main.replaceChildren(...infold.modelParts(name, { ...model, explained: { waits: true }, tests: {} }));
  const later = (one) => infold.load(one).catch((error) => ({ error: { text: error.message } }));
  const [explained, tests] = await Promise.all([later(`explained/${name}`), later("tests")]);
  main.replaceChildren(...infold.modelParts(name, { ...model, explained, tests }));
};

infold.modelState = (model) => {
  if (model.materialization === "view") return infold.pill("view");
  if (model.explained.waits) return infold.pill("…");
  if (model.explained.error) return infold.pill("refused", "bad");
  return model.explained.step ? infold.pill("stale", "warn") : infold.pill("up to date", "good");
};

/* How many cells with rows are on the calendar. */
infold.cellsOf = (model) => (model.calendar ? infold.number(model.calendar.cells.reduce((sum, [, , cells]) => sum + cells, 0)) : null);

infold.modelParts = (name, model) => {
  const { el } = infold;
  const known = infold.project.models.find((one) => one.model === name) || {};
  const { explained } = model;
  const { step } = explained;
  const kind = model.materialization.replaceAll("_", " ") + (model.incremental ? ", incremental" : "");
  return [
    el("h1", {}, name, " ", infold.modelState(model)),
    model.description ? el("p", {}, model.description) : "",
    el("p", { class: "faint" }, kind, model.granularity ? `, one ${model.granularity} a cell` : "", model.tags.map((tag) => [" ", infold.pill(tag)])),
    explained.error ? infold.notice("bad", explained.error.text) : "",
    step ? infold.stalePart(step) : "",
    model.explained.waits ? "" : infold.runPart("Run this model and what it reads", [name]),
    infold.facts([
      ["Rows", infold.number(known.rows)],
      ["Cells with rows", infold.cellsOf(model)],
      ["Version", known.version],
      ["Last built", known.run ? infold.run(known.run, infold.when(known.built_at)) : null],
      ["Took", infold.duration(known.seconds)],
      ["Layout", explained.layout],
    ]),
    model.versions.length ? infold.section("Why its rows changed", infold.versionsTable(model)) : "",
    model.calendar && model.calendar.cells.length ? infold.calendarPart(model) : "",
    model.materialization === "sessions" && model.versions.length ? infold.sessionsPart(name) : "",
    infold.readsPart(model),
    model.audits.length ? infold.section("Audits", infold.auditsTable(model.audits)) : "",
    infold.testsPart(model.tests, name),
    infold.section(
      "Definition",
      el("p", { class: "faint" }, model.file, explained.applied ? `; applied since ${infold.when(explained.applied.at)}${explained.applied.same ? "" : ", differs from the files"}` : ""),
      el("pre", {}, infold.highlighted(model.text, model.python)),
      el("h3", {}, "Columns"),
      el("p", {}, model.columns.length ? el("code", {}, model.columns.join(", ")) : "known once it is built"),
      (explained.notes || []).length ? el("div", {}, el("h3", {}, "How it is kept"), el("ul", { class: "list" }, explained.notes.map(([label, text]) => el("li", {}, label ? el("b", {}, `${label}: `) : "", text)))) : ""
    )
  ];
};

infold.stalePart = (step) =>
  infold.notice("warn", `Stale: a run would ${step.action} it`, step.rows ? `, reading about ${infold.count(step.rows, "row")}` : "", `, because of ${infold.reasons(step.reasons)}.`);

infold.versionsTable = (model) =>
  infold.table(
    [
      ["When", "when", (one) => infold.run(one.run, infold.clock(one.at))],
      ["Rows", "number", (one) => infold.signed(one.net)],
      ["Then", "number", (one) => infold.number(one.rows)],
      ["Cells", "number", (one) => infold.number(one.cells)],
      ["Why", "long", (one) => infold.why(one)],
      ["Most changed", "long", (one) => infold.mostChanged(one, model.granularity)],
    ],
    model.versions,
    8
  );

infold.mostChanged = (version, unit) => {
  if (version.whole && version.cells === 1) return "all of it";
  return version.top
    .slice(0, 3)
    .map(([start, , before, after]) => `${infold.cell(start, unit)}: ${infold.number(before)} → ${infold.number(after)}`)
    .map((text) => infold.el("div", {}, text));
};

infold.calendarPart = (model) => {
  const { el } = infold;
  const { calendar } = model;
  const hourly = calendar.cell === "hour";
  const unitOf = (at) => (hourly ? at - (((at % 86400) + 86400) % 86400) : at);
  const changes = new Map();
  const late = new Map();
  for (const change of model.changes) {
    const [, at, , , before] = change;
    if (at === null) continue;
    const unit = unitOf(at);
    if (!changes.has(unit)) changes.set(unit, []);
    changes.get(unit).push(change);
    if (before > 0) late.set(unit, (late.get(unit) || 0) + 1);
  }
  const stale = model.explained.step ? model.explained.step.spans : [];
  const picked = el("div", { "aria-live": "polite" });
  const rows = new Map(calendar.cells.map(([at, count]) => [at, count]));
  const versions = new Map(model.versions.map((one) => [one.version, one]));
  const pick = (at) => picked.replaceChildren(...infold.pickedCell(at, calendar, rows.get(at) || 0, changes.get(at) || [], versions));
  const picture = infold.calendar(calendar, { stale, late, pick });
  const last = calendar.cells.at(-1)[0];
  const field = el("input", { type: "date", value: infold.iso(last).slice(0, 10), "aria-label": "Look up a day" });
  field.addEventListener("change", () => {
    const at = Date.parse(field.value) / 1000;
    const found = Number.isNaN(at) ? undefined : [...calendar.cells].reverse().find(([start]) => start <= at);
    if (found) pick(calendar.unit === "day" ? at : found[0]);
  });
  pick(last);
  return infold.section(
    "Coverage calendar",
    el("p", { class: "note" }, hourly ? "One square a day of hours. " : `One square a ${calendar.unit}. `, "Pick one to see what changed it. Times are UTC."),
    infold.calendarLegend(late.size, stale.length),
    el(
      "div",
      { class: "beside" },
      infold.figure(
        picture,
        [[`Start of the ${calendar.unit}`, "when", ([at]) => infold.cell(at, calendar.unit)], ["Rows", "number", ([, count]) => infold.number(count)], ["Changed later", "number", ([at]) => infold.number(late.get(at) || 0)]],
        [...calendar.cells].reverse()
      ),
      el("div", {}, el("p", {}, el("label", {}, "Look up a day: ", field)), picked)
    ),
    el("h3", {}, "Rows over time"),
    el("div", { class: "wide" }, infold.rowsOverTime(calendar.cells, calendar.unit))
  );
};

infold.pickedCell = (at, calendar, rows, changes, versions) => {
  const { el } = infold;
  const title = el("h3", {}, `${infold.cell(at, calendar.unit)}: ${rows ? infold.count(rows, "row") : "no rows"}`);
  if (!changes.length) return [title, el("p", { class: "faint" }, "No change of it is kept in the ledger's newest versions.")];
  const item = ([version, start, added, removed, before, after]) => {
    const of = versions.get(version);
    const hour = calendar.cell === "hour" ? ` ${infold.iso(start).slice(11, 16)},` : "";
    return el("li", {}, of ? infold.run(of.run, infold.clock(of.at)) : `version ${version}`, `:${hour} ${infold.number(before)} → ${infold.number(after)} rows (${infold.number(added)} added, ${infold.number(removed)} removed)`, el("div", { class: "note" }, of ? infold.why(of) : ""));
  };
  const list = el("ul", { class: "list" }, changes.slice(0, 24).map(item));
  return changes.length > 24 ? [title, list, el("p", { class: "note" }, `and ${infold.number(changes.length - 24)} more`)] : [title, list];
};

infold.readsPart = (model) => {
  const { el } = infold;
  const reads = model.explained.reads || [];
  const mapping = new Map(reads.map((one) => [one.name, one]));
  const timed = model.inputs.filter((one) => one.bounds);
  const columns = [
    ["Input", "", (one) => (one.model ? infold.model(one.name) : `${one.name} (source)`)],
    ["What a cell reads of it", "long", (one) => mapping.get(one.name)?.mapping || ""],
    ["Columns", "long", (one) => (mapping.get(one.name)?.columns || ["all"]).join(", ")],
    ["Version", "number", (one) => infold.versionText(mapping.get(one.name))],
  ];
  return infold.section(
    "What it reads",
    timed.length && model.granularity ? el("div", { class: "wide" }, infold.boundsPicture(timed, model.granularity)) : "",
    infold.table(columns, model.inputs),
    model.readers.length ? el("p", {}, "Read by ", model.readers.map((one, at) => [at ? ", " : "", infold.model(one)]), ".") : el("p", { class: "faint" }, "No model reads it.")
  );
};

infold.versionText = (read) => {
  if (!read || read.now === null) return "";
  return read.built !== null && read.built !== read.now ? `${read.built}, now ${read.now}` : `${read.now}`;
};

infold.auditsTable = (audits) =>
  infold.table(
    [
      ["Audit", "", (one) => one.audit],
      ["Severity", "", (one) => one.severity],
      ["Found", "long", (one) => (one.judged.length ? one.judged.map((found) => infold.el("div", {}, infold.pill(found.state, found.state === "failed" ? "bad" : found.state === "passed" ? "good" : ""), ` ${found.found}`, found.rows.length ? infold.el("pre", {}, found.rows.slice(0, 5).map((row) => (typeof row === "string" ? row : JSON.stringify(row))).join("\n")) : "")) : "not judged yet")],
      ["When", "when", (one) => one.judged.map((found) => infold.el("div", {}, infold.when(found.judged_at)))],
    ],
    audits
  );

/* The unit tests that expect rows of a model; those that fail are not kept. */
infold.testsPart = (tests, name) => {
  if (tests.error) return infold.section("Unit tests", infold.notice("bad", tests.error.text));
  const found = (tests.models || {})[name];
  if (!found) return "";
  const columns = [
    ["Test", "long", (one) => one.test],
    ["Where", "", (one) => one.file],
    ["Last run", "", (one) => (one.passed ? infold.pill("passed", "good") : infold.pill("not known to pass"))],
  ];
  return infold.section("Unit tests", infold.table(columns, found));
};

/* Words of SQL or Python in colours; the text itself is as it is. */
infold.highlighted = (text, python) => {
  const words = python
    ? /\b(def|return|import|from|as|for|in|if|else|elif|class|with|not|and|or|None|True|False|lambda)\b/
    : /\b(select|from|where|group|by|order|having|join|left|right|full|inner|outer|cross|on|as|with|union|all|distinct|case|when|then|else|end|and|or|not|in|is|null|over|partition|rows|range|between|preceding|following|current|row|like|cast|interval|limit|exists|using|lateral|view|asc|desc|true|false)\b/i;
  const token = python
    ? /(#[^\n]*)|("""[\s\S]*?"""|"[^"\n]*"|'[^'\n]*')|(\b\d+(?:\.\d+)?\b)|([A-Za-z_]\w*)/g
    : /(--[^\n]*|\/\*[\s\S]*?\*\/)|('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")|(\b\d+(?:\.\d+)?\b)|([A-Za-z_]\w*)/g;
  const found = [];
  let end = 0;
  for (const match of text.matchAll(token)) {
    const kind = match[1] ? "c" : match[2] ? "s" : match[3] ? "n" : words.test(match[4]) ? "k" : null;
    if (!kind) continue;
    found.push(text.slice(end, match.index), infold.el("span", { class: kind }, match[0]));
    end = match.index + match[0].length;
  }
  return [...found, text.slice(end)];
};
