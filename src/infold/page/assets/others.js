"use strict";
/* Rows that could not be used, sessions in quarantine and requests to erase; environments and changed definitions. */

infold.rowText = (row) => Object.entries(row).map(([name, value]) => `${name}: ${value === null ? "NULL" : typeof value === "object" ? JSON.stringify(value) : value}`).join("\n");

infold.requestState = (request) => {
  if (request.pending.length) return [infold.pill("waits", "warn"), " for a run of ", request.pending.map((name, at) => [at ? ", " : "", infold.model(name)])];
  return request.purged ? [infold.pill("erased", "good"), " and gone from files"] : infold.pill("erased", "good");
};

infold.pages.aside = async (main) => {
  const { el } = infold;
  const aside = await infold.load("aside");
  if (aside.error) return main.replaceChildren(infold.error(aside.error));
  const { quarantined_sessions: sessions, entries } = aside.quarantine;
  const { requests } = aside.erasures;
  const samples = (rows) => (rows.length ? el("details", { class: "more" }, el("summary", {}, `${infold.count(rows.length, "row")} of them`), rows.map((row) => el("pre", {}, infold.rowText(row)))) : "");
  main.replaceChildren(
    el("h1", {}, "Rows set aside, sessions in quarantine, requests to erase"),
    infold.section(
      "Rows that could not be used",
      aside.reasons.length
        ? infold.table([["Model", "", (one) => one.model], ["Why", "long", (one) => [one.reason, samples(one.samples)]], ["Rows", "number", (one) => infold.number(one.rows)]], aside.reasons)
        : el("p", {}, "No row is set aside."),
      aside.counted ? el("p", { class: "note" }, `Of the first ${infold.number(aside.counted)}.`) : "",
      aside.files.length
        ? [el("h3", {}, "Files with most of them"), infold.table([["File", "long", (one) => one.path], ["Model", "", (one) => infold.model(one.model)], ["Set aside", "number", (one) => infold.number(one.set_aside)], ["Used", "number", (one) => infold.number(one.rows)], ["Ingested", "when", (one) => infold.when(one.received_at)]], aside.files)]
        : ""
    ),
    infold.section(
      "Events in no session",
      aside.left_out.models.length
        ? [infold.table([["Model", "", (one) => infold.model(one.model)], ["Why", "", (one) => one.reason], ["Events", "number", (one) => infold.number(one.rows)]], aside.left_out.models), samples(aside.left_out.samples)]
        : el("p", {}, "None.")
    ),
    infold.section(
      "Sessions in quarantine",
      sessions.length
        ? [
            el("p", { class: "note" }, `${infold.count(aside.quarantine.sessions, "session")}, the longest first. They are in no table, and cost no run anything.`),
            infold.table([["Session of", "long", (one) => one.session_identifier], ["User", "", (one) => one.user_identifier], ["Why", "long", (one) => one.reason], ["Start", "when", (one) => infold.when(one.start_tstamp)], ["End", "when", (one) => infold.when(one.end_tstamp)], ["Events", "number", (one) => infold.number(one.events)]], sessions),
          ]
        : el("p", {}, "None."),
      entries.length
        ? [el("h3", {}, "Decided by hand"), infold.table([["Model", "", (one) => infold.model(one.model)], ["Decision", "", (one) => one.action], ["Of", "long", (one) => one.of], ["Why", "long", (one) => one.reason], ["When", "when", (one) => infold.when(one.made_at)], ["Applied", "", (one) => (one.applied ? "yes" : "with the next run")]], entries)]
        : ""
    ),
    infold.section(
      "Requests to erase",
      requests.length
        ? infold.table([["Request", "long", (one) => one.id], ["Erased", "", (one) => one.erasure], ["State", "", infold.requestState], ["Asked", "when", (one) => infold.when(one.made_at)], ["Only", "long", (one) => [one.source, one.before ? `before ${infold.when(one.before)}` : ""].filter(Boolean).join(", ")], ["Why", "long", (one) => one.reason || (one.hashes ? "" : "columns declared since the earlier ones")]], requests)
        : el("p", {}, "Nobody was asked to be erased.")
    )
  );
};

infold.pages.changes = async (main) => {
  const { el } = infold;
  const changes = await infold.load("changes");
  if (changes.error) return main.replaceChildren(infold.error(changes.error));
  const line = (text) => el("span", { class: text.startsWith("+") ? "plus" : text.startsWith("-") ? "minus" : "same" }, text || " ");
  const later = changes.definitions.filter((one) => !one.first), first = changes.definitions.filter((one) => one.first);
  const change = (one) =>
    el("li", {}, infold.project.models.some((known) => known.model === one.model) ? infold.model(one.model) : one.model, one.kept_at ? ` ${infold.when(one.kept_at)} ` : "", one.applied ? infold.pill("applied", "good") : "", one.in_files ? [" ", infold.pill("in the files")] : "", one.keys.length ? el("div", { class: "note" }, `Also changed: ${one.keys.join(", ").replaceAll("_", " ")}`) : "", one.lines.length ? el("pre", {}, one.lines.map(line)) : el("div", { class: "note" }, "The query is the same."));
  main.replaceChildren(
    el("h1", {}, "Environments and changed definitions"),
    infold.section(
      "Environments",
      changes.environments.length
        ? infold.table([["Name", "", (one) => one.name], ["Owner", "", (one) => one.owner], ["Made", "when", (one) => infold.when(one.created_at)], ["Last run", "when", (one) => infold.when(one.last_run_at)], ["Complete", "", (one) => (one.built_at ? "yes" : "not yet")], ["Expires", "when", (one) => infold.when(one.expires_at)], ["Own tables", "long", (one) => one.tables.map((table) => `${table.model} (${infold.number(table.rows)} rows)`).join(", ") || "none"], ["MB", "number", (one) => (one.bytes / 1e6).toFixed(1)]], changes.environments)
        : el("p", {}, "None: all tables are production's."),
      changes.swaps.length ? [el("h3", {}, "Tables that were swapped"), infold.table([["When", "when", (one) => infold.when(one.made_at)], ["How", "", (one) => one.kind], ["Environment", "", (one) => one.environment], ["Models", "long", (one) => one.models.join(", ")]], changes.swaps)] : ""
    ),
    changes.waiting.length || changes.unapplied.length
      ? infold.section("Changed in the files, not applied yet", el("ul", { class: "list" }, changes.waiting.map(change)), changes.unapplied.length ? el("p", {}, `infold apply applies ${changes.unapplied.join(", ")}.`) : "")
      : "",
    infold.section("Changed definitions", later.length ? el("ul", { class: "list" }, later.map(change)) : el("p", {}, "No definition has changed since its table was first built.")),
    infold.section("First definitions", first.length ? el("details", {}, el("summary", {}, infold.count(first.length, "model")), el("ul", { class: "list" }, first.map(change))) : el("p", {}, "Nothing was built yet."))
  );
};
