"use strict";
/* The runs, and one of them. */

infold.runKind = (state) => (state === "done" ? "good" : state === "running" ? "" : "bad");

infold.pages.runs = async (main) => {
  const { el } = infold;
  const { runs, most } = await infold.loadOrThrow("runs");
  main.replaceChildren(
    el("h1", {}, "Runs"),
    el("p", { class: "faint" }, runs.length >= most ? `The newest ${infold.number(most)}.` : infold.count(runs.length, "run") + "."),
    infold.section(
      "Newest first",
      runs.length
        ? infold.table(
            [
              ["Began", "when", (run) => infold.run(run.run, infold.clock(run.started_at))],
              ["Command", "", (run) => run.command],
              ["State", "", (run) => infold.pill(run.state, infold.runKind(run.state))],
              ["Took", "number", (run) => infold.duration(run.seconds)],
              ["Arrived", "number", (run) => infold.number(run.receipt.arrived)],
              ["Read", "number", (run) => infold.number(run.receipt.read)],
              ["Written", "number", (run) => infold.number(run.receipt.written)],
              ["Removed", "number", (run) => infold.number(run.receipt.removed)],
              ["Set aside", "number", (run) => infold.number(run.receipt.set_aside)],
              ["Commits", "number", (run) => infold.number(run.receipt.commits)],
            ],
            runs
          )
        : el("p", {}, "No runs yet: infold run makes the first.")
    )
  );
};

infold.RECEIPT = [
  ["arrived", "Rows arrived"], ["read", "Rows read"], ["scanned", "Rows scanned"], ["written", "Rows written"], ["removed", "Rows removed"],
  ["read_per_arrived", "Read per new row"], ["deduplicated", "Copies left out"], ["conflicting", "Conflicting copies"], ["set_aside", "Set aside"],
  ["waiting", "Waiting"], ["before_start", "Before the start"], ["clamped", "Clamped"], ["cells_built", "Cells built"], ["cells_cut_off", "Cells cut off"], ["sessions_new", "Sessions new"],
  ["sessions_extended", "Sessions extended"], ["sessions_merged", "Sessions merged"], ["sessions_split", "Sessions split"], ["sessions_removed", "Sessions removed"],
  ["sessions_quarantined", "Into quarantine"], ["files_new", "Files new"], ["files_removed", "Files removed"], ["commits", "Commits"], ["audits", "Audits judged"], ["audits_failed", "Audits failed (warn)"],
];

infold.receiptFacts = (receipt) =>
  infold.facts(infold.RECEIPT.filter(([key]) => receipt[key]).map(([key, label]) => [label, key === "read_per_arrived" ? receipt[key].toFixed(2) : infold.number(receipt[key])]));

infold.pages.run = async (main, id) => {
  const { el } = infold;
  const run = await infold.loadOrThrow(`run/${id}`);
  const strips = run.steps.filter((step) => step.spans.length).map((step) => ({ model: step.model, spans: step.spans }));
  const strip = infold.strips(strips);
  main.replaceChildren(
    el("h1", {}, `Run of ${infold.clock(run.started_at)} `, infold.pill(run.state, infold.runKind(run.state))),
    el("p", { class: "faint" }, `${run.command}, ${infold.duration(run.seconds) || "not finished"}, ${run.run}`),
    run.error ? infold.notice("bad", run.error) : "",
    infold.section("Receipt", infold.receiptFacts(run.receipt), Object.keys(run.receipt.set_aside_by).length ? el("p", {}, "Set aside: ", Object.entries(run.receipt.set_aside_by).map(([why, rows]) => `${why} (${infold.number(rows)})`).join(", ")) : ""),
    infold.section("Steps", run.steps.length ? infold.stepsTable(run) : el("p", {}, "Nothing was to be done.")),
    run.steps.some((step) => step.finished_at) ? infold.section("When", el("div", { class: "wide" }, infold.stepsOverTime(run))) : "",
    strip ? infold.section("Which event time was built", el("div", { class: "wide" }, strip)) : ""
  );
};

infold.stepsTable = (run) =>
  infold.table(
    [
      ["Table", "", (step) => infold.stepModel(step)],
      ["How", "", (step) => [step.action, step.state === "done" ? "" : [" ", infold.pill(step.state, "bad")]]],
      ["Why", "long", (step) => [infold.why(step), step.error ? infold.notice("bad", step.error) : ""]],
      ["Read", "number", (step) => (step.receipt ? infold.number(step.receipt.read) : "")],
      ["Added", "number", (step) => (step.changed ? infold.number(step.changed.added) : "")],
      ["Removed", "number", (step) => (step.changed ? infold.number(step.changed.removed) : "")],
      ["Rows", "number", (step) => (step.changed ? infold.signed(step.changed.net) : "unchanged")],
      ["Most changed", "long", (step) => (step.changed ? infold.mostChanged(step.changed, step.granularity) : "")],
      ["Took", "number", (step) => infold.duration(step.seconds)],
    ],
    run.steps
  );
