"use strict";
/* The project: what needs attention, what changed last, the graph, and every model. */

infold.STATE_KINDS = { "standard run": "good", "out of sync": "warn", "new model": "warn", "first run": "warn", refused: "bad", view: "" };

infold.stateKind = (state) => {
  if (state.state === "refused" || state.audits_failed.length) return "bad";
  return state.stale ? "warn" : infold.STATE_KINDS[state.state];
};

infold.stateText = (state) => {
  if (state.state === "refused") return "refused";
  if (state.stale) return `stale: ${state.stale}`;
  return state.state === "standard run" ? "up to date" : state.state;
};

infold.pages.project = async (main) => {
  const { el } = infold;
  const project = infold.project;
  const attention = el("div", {}, el("p", { class: "faint" }, "Looking at sources and tables…"));
  const changed = el("div", {}, el("p", { class: "faint" }, "Looking for the last run…"));
  const graph = infold.graph(project);
  const table = el("div");
  main.replaceChildren(
    el("h1", {}, project.project),
    el("div", { class: "two" }, infold.section("What needs attention", attention, infold.runPart("Run now", [])), infold.section("What changed last", changed)),
    infold.section("Models", el("div", { class: "tall" }, graph), el("h3", {}, "All models"), table)
  );
  const states = {};
  const columns = [
    ["Model", "", (one) => [infold.model(one.model), one.landed ? " (landed)" : ""]],
    ["State", "", (one) => (states[one.model] ? infold.pill(infold.stateText(states[one.model]), infold.stateKind(states[one.model])) : "…")],
    ["Rows", "number", (one) => infold.number(one.rows)],
    ["Newest event", "when", (one) => (states[one.model]?.last_event ? infold.when(states[one.model].last_event) : "")],
    ["Last built", "when", (one) => (one.run ? infold.run(one.run, infold.when(one.built_at)) : "")],
    ["Took", "number", (one) => infold.duration(one.seconds)],
    ["Read", "number", (one) => infold.number(one.read)],
    ["Written", "number", (one) => infold.number(one.written)],
    ["Kind", "", (one) => one.materialization.replaceAll("_", " ") + (one.incremental ? ", incremental" : "")],
  ];
  const draw = () => table.replaceChildren(infold.table(columns, project.models, 100));
  draw();
  infold.showLastChange(changed).catch((error) => changed.replaceChildren(el("pre", {}, error.message)));
  const found = await infold.load("states");
  if (found.error) return attention.replaceChildren(el("pre", {}, found.error.text));
  Object.assign(states, found.models);
  for (const dot of graph.querySelectorAll("[data-model]")) {
    const state = states[dot.dataset.model];
    const kind = state && infold.stateKind(state);
    if (kind) dot.classList.add(kind);
    if (state) dot.append(infold.svg("title", {}, infold.stateText(state)));
  }
  draw();
  attention.replaceChildren(...infold.attention(project, found));
};

infold.attention = (project, found) => {
  const { el } = infold;
  const items = [];
  const add = (kind, ...parts) => items.push(el("li", {}, infold.pill(kind[0], kind[1]), " ", ...parts));
  for (const [name, state] of Object.entries(found.models)) {
    if (state.refused) add(["refused", "bad"], infold.model(name), `: ${state.refused.what}`);
    for (const text of state.audits_failed) add(["audit failed", "bad"], infold.model(name), `: ${text}`);
    if (state.waits_for.length) add(["waits", "warn"], infold.model(name), ` for ${state.waits_for.join(", ")}`);
  }
  for (const step of found.plan.steps.slice(0, 12)) {
    const why = infold.reasons(step.reasons);
    const rows = step.rows ? `; about ${infold.count(step.rows, "row")} to read` : "";
    add(["stale", "warn"], infold.model(step.model), `: ${[step.cells, why].filter(Boolean).join(", ")}${rows}`);
  }
  if (found.plan.steps.length > 12) items.push(el("li", {}, `and ${infold.number(found.plan.steps.length - 12)} more stale tables`));
  for (const [name, state] of Object.entries(found.models)) {
    if (state.set_aside) add(["set aside", "warn"], infold.link(infold.count(state.set_aside, "row"), "aside"), ` of ${name}`);
    if (state.waiting) add(["waiting", ""], infold.model(name), `: ${infold.count(state.waiting, "row")} dated in the future`);
    if (state.quarantined) add(["quarantine", ""], infold.link(infold.count(state.quarantined, "session"), "aside"), ` of ${name}`);
  }
  const notes = found.plan.notes.map((text) => infold.notice("", text));
  const cost = found.plan.steps.length
    ? `A run now would do ${infold.count(found.plan.steps.length, "step")} and read about ${infold.count(found.plan.rows, "row")}.`
    : "All tables are up to date: a run now would only list files.";
  return [el("p", {}, cost), items.length ? el("ul", { class: "list" }, items) : null, ...notes].filter(Boolean);
};

/* The newest run that committed anything, with what it did to each table. */
infold.showLastChange = async (place) => {
  const { el } = infold;
  const { runs } = await infold.loadOrThrow("runs");
  const failed = runs[0] && !["done", "running"].includes(runs[0].state) ? runs[0] : null;
  const parts = [];
  if (failed) parts.push(infold.notice("bad", "The last run ", infold.run(failed.run, `${failed.state} at ${infold.when(failed.started_at)}`), failed.error ? `: ${failed.error.split("\n")[0]}` : ""));
  const newest = runs.find((run) => run.receipt.commits);
  if (!newest) return place.replaceChildren(...parts, el("p", {}, "No run has written anything yet: infold run makes the first."));
  const run = await infold.loadOrThrow(`run/${newest.run}`);
  parts.push(
    el("p", {}, infold.run(run.run, infold.clock(run.started_at)), ` ${infold.ago(run.started_at)}: ${infold.number(run.receipt.arrived)} rows arrived, ${infold.number(run.receipt.read)} read, ${infold.number(run.receipt.written)} written.`),
    infold.table(
      [
        ["Table", "", (step) => infold.stepModel(step)],
        ["Rows", "number", (step) => (step.changed ? infold.signed(step.changed.net) : "unchanged")],
        ["Why", "long", (step) => infold.why(step)],
      ],
      run.steps,
      12
    )
  );
  place.replaceChildren(...parts);
};

infold.stepModel = (step) => (step.known ? infold.model(step.model) : step.model);

/* The reasons of a step in words; of files, which. */
infold.why = (step) => {
  const files = infold.files(step);
  return [infold.reasons(step.reasons), files ? infold.el("div", { class: "note" }, files) : null];
};
