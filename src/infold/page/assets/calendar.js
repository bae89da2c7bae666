"use strict";
/* Cells as squares: days in weeks as on a wall, longer cells in rows of a year. */

/* How dark a square is, by the quantiles of what there is. */
infold.levels = (values) => {
  const sorted = values.filter((one) => one > 0).sort((a, b) => a - b);
  if (sorted[0] === sorted.at(-1)) return (value) => (value > 0 ? 3 : 0);
  const cuts = [0.25, 0.5, 0.8].map((part) => sorted[Math.floor(part * (sorted.length - 1))] || 0);
  return (value) => (value > 0 ? 1 + cuts.filter((cut) => value > cut).length : 0);
};

infold.DAY = 86400;

infold.yearStart = (year) => Date.UTC(year, 0, 1) / 1000;

/* Where the square of a cell is in its year: [column, row]. */
infold.square = (at, unit, year) => {
  const date = new Date(at * 1000);
  if (unit === "day") {
    const offset = (new Date(infold.yearStart(year) * 1000).getUTCDay() + 6) % 7;
    const day = Math.floor((at - infold.yearStart(year)) / infold.DAY) + offset;
    return [Math.floor(day / 7), day % 7];
  }
  if (unit === "week") return [Math.floor((at - infold.yearStart(year)) / (7 * infold.DAY)), 0];
  if (unit === "month") return [date.getUTCMonth(), 0];
  if (unit === "quarter") return [Math.floor(date.getUTCMonth() / 3), 0];
  return [0, 0];
};

/* All cells of a unit from the first with rows to the last; those without rows too. */
infold.allCells = (first, last, unit) => {
  const found = [];
  const step = { day: infold.DAY, week: 7 * infold.DAY }[unit];
  for (let at = first; at <= last && found.length < 20000; ) {
    found.push(at);
    const date = new Date(at * 1000);
    const months = { month: 1, quarter: 3, year: 12 }[unit];
    at = step ? at + step : Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + months, 1) / 1000;
  }
  return found;
};

infold.calendar = (calendar, { stale, late, pick }) => {
  const { svg } = infold;
  const { unit, cells } = calendar;
  const rows = new Map(cells.map(([at, count, parts]) => [at, [count, parts]]));
  const level = infold.levels(cells.map(([, count]) => count));
  const ends = stale.flat().filter((at) => at !== null);
  const known = [...rows.keys()];
  const first = known[0], last = known.at(-1);
  const every = infold.allCells(first, Math.max(last, ...ends.map((end) => Math.min(end - 1, last + 400 * infold.DAY))), unit);
  const size = unit === "day" ? 11 : 15, gap = 2, left = 40;
  const bands = unit === "day" ? 7 : 1, between = unit === "day" ? 20 : 4;
  const years = [...new Set(every.map((at) => new Date(at * 1000).getUTCFullYear()))].sort((a, b) => b - a);
  const top = (year) => years.indexOf(year) * (bands * (size + gap) + between) + 14;
  const columns = { day: 54, week: 53, month: 12, quarter: 4, year: 1 }[unit];
  const width = left + columns * (size + gap), height = top(years.at(-1)) + bands * (size + gap) + 4;
  const isStale = (at) => stale.some(([start, end]) => (start === null || start < at + infold.UNITS[unit]) && (end === null || at < end));
  const squares = every.map((at) => {
    const year = new Date(at * 1000).getUTCFullYear();
    const [column, line] = infold.square(at, unit, year);
    const [count, parts] = rows.get(at) || [0, 0];
    const x = left + column * (size + gap), y = top(year) + line * (size + gap);
    const behind = isStale(at), came = late.get(at);
    const says = [`${infold.cell(at, unit)}: ${count ? infold.count(count, "row") : "no rows"}`];
    if (calendar.cell === "hour" && count) says.push(`in ${infold.count(parts, "hour")}`);
    if (behind) says.push("stale");
    if (came) says.push(`changed ${came} ${came === 1 ? "time" : "times"} after it was first built`);
    const square = svg("rect", { class: `cell h${level(count)}${behind ? " stale" : ""}`, x, y, width: size, height: size, rx: 2, "data-at": at }, svg("title", {}, says.join(", ")));
    return [square, came ? svg("circle", { class: "late", cx: x + size - 2.5, cy: y + 2.5, r: 2.5 }) : null];
  });
  const months = unit === "day" ? ["Jan", "Apr", "Jul", "Oct"] : [];
  const picture = svg(
    "svg",
    { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": "Coverage calendar: one square a cell" },
    years.map((year) => [
      svg("text", { x: 0, y: top(year) + (unit === "day" ? 10 : 11), class: "strong" }, year),
      months.map((name, at) => svg("text", { x: left + Math.floor((at * 3 * 30.4) / 7) * (size + gap), y: top(year) - 4 }, name)),
    ]),
    squares
  );
  picture.addEventListener("click", (event) => {
    const at = event.target.dataset?.at;
    if (at === undefined) return;
    picture.querySelector(".picked")?.classList.remove("picked");
    event.target.classList.add("picked");
    pick(Number(at));
  });
  return picture;
};

infold.calendarLegend = (late, stale) =>
  infold.el(
    "div",
    { class: "legend" },
    infold.el("span", {}, infold.el("i", { class: "h0" }), "no rows"),
    infold.el("span", {}, infold.el("i", { class: "h1" }), infold.el("i", { class: "h2" }), infold.el("i", { class: "h3" }), infold.el("i", { class: "h4" }), "few to many rows"),
    late ? infold.el("span", {}, infold.el("i", { class: "late" }), "changed after it was first built") : null,
    stale ? infold.el("span", {}, infold.el("i", { class: "stale" }), "stale") : null
  );

/* Rows by event time (across) and received time (down). */
infold.heat = (heat) => {
  const { svg } = infold;
  const unit = infold.UNITS[heat.unit];
  const xs = heat.cells.map(([event]) => event), ys = heat.cells.map(([, received]) => received);
  const least = (values) => values.reduce((a, b) => Math.min(a, b)), most = (values) => values.reduce((a, b) => Math.max(a, b));
  const [x0, x1, y0, y1] = [least(xs), most(xs) + unit, least(ys), most(ys) + unit];
  const columns = Math.round((x1 - x0) / unit), lines = Math.round((y1 - y0) / unit);
  const size = Math.max(5, Math.min(16, Math.floor(780 / Math.max(columns, lines))));
  const left = 74, bottom = 36;
  const width = left + columns * size + 70, height = lines * size + bottom + 4;
  const level = infold.levels(heat.cells.map(([, , rows]) => rows));
  const x = (at) => left + Math.round((at - x0) / unit) * size;
  const y = (at) => Math.round((at - y0) / unit) * size;
  const labels = (from, to, many) => Array.from({ length: many }, (_, at) => from + Math.floor(((to - from) / unit) * (at / many)) * unit);
  return svg(
    "svg",
    { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": `Rows by ${heat.unit} of the event and ${heat.unit} received` },
    svg("rect", { x: left, y: 0, width: columns * size, height: lines * size, fill: "none", class: "axis" }),
    heat.cells.map(([event, received, rows]) =>
      svg("rect", { class: `h${level(rows)}`, x: x(event), y: y(received), width: size - 1, height: size - 1 },
        svg("title", {}, `happened ${infold.cell(event, heat.unit)}, received ${infold.cell(received, heat.unit)}: ${infold.count(rows, "row")}`))
    ),
    labels(x0, x1, Math.min(8, columns)).map((at) => svg("text", { x: x(at), y: lines * size + 14 }, infold.cell(at, heat.unit === "week" ? "day" : heat.unit))),
    labels(y0, y1, Math.min(8, lines)).map((at) => svg("text", { x: left - 6, y: y(at) + 9, "text-anchor": "end" }, infold.cell(at, heat.unit === "week" ? "day" : heat.unit))),
    svg("text", { x: left, y: lines * size + 31, class: "strong" }, "when it happened →   (down: when it was received)")
  );
};
