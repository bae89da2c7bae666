"use strict";
/* Pictures in SVG: bars over time, bars of shares, steps on an axis, stretches that a cell reads. */

infold.nice = (value) => {
  const size = 10 ** Math.floor(Math.log10(Math.max(1, value)));
  return [1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10].map((one) => one * size).find((one) => one >= value) || value;
};

/* Rows over time: points are [seconds, rows], added up into at most as many bars as there is room. */
infold.rowsOverTime = (points, unit) => {
  const { svg } = infold;
  const width = 900, height = 150, left = 56, bottom = 20, top = 8;
  const first = points[0][0], last = points.at(-1)[0] + infold.UNITS[unit];
  const size = Math.max(infold.UNITS[unit], Math.ceil((last - first) / 180 / infold.UNITS[unit]) * infold.UNITS[unit]);
  const bins = new Map();
  for (const [at, rows] of points) {
    const bin = Math.floor((at - first) / size);
    bins.set(bin, (bins.get(bin) || 0) + rows);
  }
  const most = infold.nice(Math.max(...bins.values()));
  const x = (at) => left + ((at - first) / (last - first)) * (width - left);
  const y = (rows) => height - bottom - (rows / most) * (height - bottom - top);
  const bars = [...bins].map(([bin, rows]) => {
    const start = first + bin * size;
    const end = Math.min(last, start + size);
    const bar = svg("rect", { class: "bar", x: x(start), width: Math.max(1, x(end) - x(start) - 0.7), y: y(rows), height: Math.max(1, height - bottom - y(rows)) });
    bar.append(svg("title", {}, `${infold.range([start, end])}: ${infold.count(rows, "row")}`));
    return bar;
  });
  const picture = svg(
    "svg",
    { viewBox: `0 0 ${width} ${height}`, width: "100%", class: "chart", role: "img", "aria-label": "Rows over time" },
    [0, most / 2, most].map((rows) => [
      svg("line", { class: "axis", x1: left, x2: width, y1: y(rows), y2: y(rows) }),
      svg("text", { x: left - 6, y: y(rows) + 4, "text-anchor": "end" }, infold.number(Math.round(rows))),
    ]),
    bars,
    infold.timeAxis(first, last, x, height - 5)
  );
  return picture;
};

/* A few dates below a picture. */
infold.timeAxis = (first, last, x, y, most = 7) => {
  const found = [];
  const steps = Math.min(most, Math.max(1, Math.floor((last - first) / 86400)));
  const long = last - first > 3 * 365 * 86400;
  for (let at = 0; at < steps; at += 1) {
    const when = first + ((last - first) * at) / steps;
    const text = infold.iso(when);
    const label = last - first < 2 * 86400 ? text.slice(5, 16).replace("T", " ") : long ? text.slice(0, 7) : text.slice(0, 10);
    found.push(infold.svg("text", { x: x(when), y }, label));
  }
  return found;
};

/* Steps of a run: when each began and how long it took. */
infold.stepsOverTime = (run) => {
  const { svg } = infold;
  const start = Date.parse(run.started_at) / 1000;
  const steps = run.steps.filter((step) => step.finished_at);
  const ends = steps.map((step) => Date.parse(step.finished_at) / 1000);
  const whole = Math.max(0.001, (run.finished_at ? Date.parse(run.finished_at) / 1000 : Math.max(...ends, start)) - start);
  const width = 900, left = 190, row = 24;
  const x = (at) => left + ((at - start) / whole) * (width - left - 70);
  const height = steps.length * row + 24;
  const marks = [0, 0.25, 0.5, 0.75, 1].map((part) => start + whole * part);
  return svg(
    "svg",
    { viewBox: `0 0 ${width} ${height}`, width: "100%", class: "chart", role: "img", "aria-label": "Steps over time" },
    marks.map((at) => [
      svg("line", { class: "axis", x1: x(at), x2: x(at), y1: 0, y2: height - 18 }),
      svg("text", { x: x(at), y: height - 4, "text-anchor": "middle" }, infold.duration(at - start)),
    ]),
    steps.map((step, at) => {
      const from = Date.parse(step.started_at) / 1000, to = ends[at];
      return [
        svg("text", { class: "strong", x: left - 8, y: at * row + 15, "text-anchor": "end" }, infold.clipped(step.model, 26)),
        svg(
          "rect",
          { class: step.state === "done" ? "bar" : "bar bad", x: x(from), y: at * row + 4, height: row - 9, width: Math.max(2, x(to) - x(from)), rx: 2 },
          svg("title", {}, `${step.model}: ${step.action}, ${infold.duration(to - from)}`)
        ),
        svg("text", { x: x(to) + 5, y: at * row + 15 }, infold.duration(to - from)),
      ];
    })
  );
};

infold.clipped = (text, length) => (text.length > length ? text.slice(0, length - 1) + "…" : text);

/* The cells of each step on a common axis of event time. */
infold.strips = (rows) => {
  const { svg } = infold;
  const ends = rows.flatMap((one) => one.spans.flat()).filter((at) => at !== null);
  if (!ends.length) return null;
  const first = ends.reduce((a, b) => Math.min(a, b)), last = ends.reduce((a, b) => Math.max(a, b));
  const width = 900, left = 190, row = 22;
  const x = (at) => left + ((at - first) / Math.max(1, last - first)) * (width - left - 10);
  const height = rows.length * row + 22;
  return svg(
    "svg",
    { viewBox: `0 0 ${width} ${height}`, width: "100%", class: "chart", role: "img", "aria-label": "Which stretches of event time were built" },
    rows.map((one, at) => [
      svg("text", { class: "strong", x: left - 8, y: at * row + 15, "text-anchor": "end" }, infold.clipped(one.model, 26)),
      svg("rect", { class: "h0", x: left, width: width - left - 10, y: at * row + 5, height: row - 9, rx: 2 }),
      one.spans.map(([start, end]) => {
        const from = x(start === null ? first : start), to = x(end === null ? last : end);
        return svg("rect", { class: "bar", x: from, width: Math.max(2, to - from), y: at * row + 5, height: row - 9 }, svg("title", {}, infold.range([start, end])));
      }),
    ]),
    infold.timeAxis(first, last, x, height - 4, 6)
  );
};

/* Which stretch of each input a cell reads. */
infold.boundsPicture = (inputs, granularity) => {
  const { svg } = infold;
  const cell = infold.UNITS[granularity];
  const bounds = inputs.flatMap((input) => input.bounds);
  const before = Math.max(0, ...bounds.map(([b]) => b)), after = Math.max(0, ...bounds.map(([, a]) => a));
  const width = 900, left = 190, row = 30;
  const from = -before - cell * 0.6, to = cell + after + cell * 0.6;
  const x = (at) => left + ((at - from) / (to - from)) * (width - left - 20);
  const lines = inputs.flatMap((input) => input.bounds.map((bound) => [input, bound]));
  const height = (lines.length + 1) * row + 24;
  const says = ([b, a]) => {
    const parts = [b ? `${infold.duration(Math.abs(b))} ${b > 0 ? "before" : "after its start"}` : "", a ? `${infold.duration(Math.abs(a))} ${a > 0 ? "after" : "before its end"}` : ""];
    return parts.filter(Boolean).join(", ") || "the same time";
  };
  return svg(
    "svg",
    { viewBox: `0 0 ${width} ${height}`, width: "100%", class: "chart", role: "img", "aria-label": "Which stretch of each input one cell reads" },
    lines.map(([input, [b, a]], at) => [
      svg("text", { class: "strong", x: left - 8, y: at * row + 18, "text-anchor": "end" }, infold.clipped(input.name, 26)),
      svg("rect", { class: "bar quiet", x: x(-b), width: Math.max(2, x(cell + a) - x(-b)), y: at * row + 5, height: row - 12, rx: 2 }),
      svg("text", { class: "strong", x: x(-b) + 6, y: at * row + 19 }, says([b, a])),
    ]),
    svg("text", { class: "strong", x: left - 8, y: lines.length * row + 18, "text-anchor": "end" }, "one cell"),
    svg("rect", { class: "bar", x: x(0), width: x(cell) - x(0), y: lines.length * row + 5, height: row - 12, rx: 2 }),
    [0, cell].map((at) => svg("line", { class: "axis", x1: x(at), x2: x(at), y1: 0, y2: height - 18, "stroke-dasharray": "3 3" })),
    svg("text", { x: x(cell / 2), y: height - 4, "text-anchor": "middle" }, `one ${granularity}`)
  );
};
