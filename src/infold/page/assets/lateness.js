"use strict";
/* How late rows are, which files brought them, and what a lookback would have missed. */

infold.pages.lateness = async (main, chosen) => {
  const { el } = infold;
  const names = infold.project.models.filter((one) => one.materialization === "events").map((one) => one.model);
  if (!names.length) return main.replaceChildren(el("h1", {}, "Lateness"), el("p", {}, "No model of this project ingests files."));
  const name = chosen || names[0];
  const choice = el("select", { "aria-label": "Table of events" }, names.map((one) => el("option", { value: one, selected: one === name }, one)));
  choice.addEventListener("change", () => (location.hash = infold.href("lateness", choice.value)));
  const body = el("div", {}, el("p", { class: "faint" }, "Reading the times of the rows…"));
  main.replaceChildren(el("h1", {}, `Lateness of ${name}`), names.length > 1 ? el("p", {}, el("label", {}, "Table: ", choice)) : "", body);
  const late = await infold.load(`lateness/${name}`);
  if (late.error) return body.replaceChildren(infold.error(late.error));
  body.replaceChildren(...infold.latenessParts(late));
};

infold.latenessParts = (late) => {
  const { el } = infold;
  const parts = [];
  if (late.picture) {
    const { event_unit: unit, left_out, since, cells } = late.picture;
    const heat = { unit, left_out, since: since.slice(0, 10), cells: cells.map((one) => [infold.seconds(one.event), infold.seconds(one.received), one.rows]) };
    const [day, , week, month] = late.lookbacks;
    parts.push(
      el("p", {}, infold.how(late)),
      infold.section(
        "What a lookback would have missed",
        el("p", {}, `${infold.percent(day.rows, late.rows)} of ${infold.count(late.rows, "row")} came more than a day after they happened, ${infold.percent(week.rows, late.rows)} more than a week, ${infold.percent(month.rows, late.rows)} more than 30 days. The latest came ${infold.count(late.longest_days, "day")} after.`),
        el("p", { class: "note" }, "A job that runs each day and processes the last N days again never sees a row that comes later than that. infold has all of them; it builds the days that they belong to."),
        infold.table(
          [
            ["Lookback", "", (one) => infold.count(one.days, "day")],
            ["Rows missed", "number", (one) => infold.number(one.rows)],
            ["Share", "number", (one) => infold.percent(one.rows, late.rows) || "0 %"],
            ["", "", (one) => infold.share(one.rows, late.rows, 14)],
            ["Days left wrong", "number", (one) => infold.number(one.event_days)],
          ],
          late.lookbacks
        )
      ),
      infold.section(
        "Age of rows when they were received",
        infold.table(
          [
            ["Age", "", (one) => one.age],
            ["Rows", "number", (one) => infold.number(one.rows)],
            ["Share", "number", (one) => infold.percent(one.rows, late.rows) || "0 %"],
            ["", "", (one) => infold.share(one.rows, late.rows, 14)],
          ],
          late.ages
        )
      ),
      infold.section(
        `When rows happened, and when they were received, by ${heat.unit}`,
        el("p", { class: "note" }, "On the diagonal: received when they happened. Below it: late."),
        infold.figure(
          infold.heat(heat),
          [["Happened", "when", ([event]) => infold.cell(event, heat.unit)], ["Received", "when", ([, received]) => infold.cell(received, heat.unit)], ["Rows", "number", ([, , rows]) => infold.number(rows)]],
          heat.cells
        ),
        heat.left_out ? el("p", { class: "note" }, `${infold.count(heat.left_out, "row")} from before ${heat.since} are not drawn.`) : ""
      ),
      late.worst.length
        ? infold.section("Days with most late rows", el("p", { class: "note" }, "Rows that came more than a day later."), infold.table([["Day", "when", (one) => infold.cell(infold.seconds(one.day), "day")], ["Late rows", "number", (one) => infold.number(one.rows)]], late.worst))
        : ""
    );
  } else {
    parts.push(infold.notice("", late.column ? "The table has no rows with both times yet." : `${late.source} has no received_column that the table keeps, so nobody knows how late its rows came.`));
  }
  parts.push(infold.arrivalsPart(late));
  return parts;
};

/* The instant of a text, in seconds since 1970. */
infold.seconds = (text) => Date.parse(text) / 1000;

infold.how = (late) => {
  const since = late.since ? ` Rows from before ${infold.when(late.since)} are left out.` : "";
  return `By the column ${late.column} of each row that is in the table.${since}`;
};

infold.arrivalsPart = (late) =>
  infold.section(
    "What each run brought",
    infold.el("p", { class: "note" }, "Late here: rows for cells that had rows already. Not counted where the table was built whole."),
    late.arrivals.length
      ? infold.table(
          [
            ["When", "when", (one) => infold.run(one.run, infold.clock(one.at))],
            ["Files", "long", (one) => infold.files(one) || infold.reasons(one.reasons)],
            ["Added", "number", (one) => infold.number(one.added)],
            ["Late", "number", (one) => infold.number(one.late)],
            ["In cells", "number", (one) => infold.number(one.late_cells)],
            ["Oldest", "when", (one) => (one.oldest === null ? "" : infold.cell(one.oldest, "day"))],
            ["Removed", "number", (one) => infold.number(one.removed)],
          ],
          late.arrivals
        )
      : infold.el("p", {}, "Nothing yet.")
  );
