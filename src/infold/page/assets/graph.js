"use strict";
/* The graph of models: sources on the left, each model right of all that it reads. */

infold.BOX = [176, 46, 58, 14]; // width, height, room between columns, room between boxes

infold.layers = (project) => {
  const reads = new Map(project.models.map((one) => [one.model, one.reads]));
  const depth = new Map(project.sources.map((one) => [one.source, 0]));
  const of = (name) => {
    if (!depth.has(name)) {
      depth.set(name, 0); // a name that reads itself would not end
      depth.set(name, 1 + Math.max(0, ...(reads.get(name) || []).map(of)));
    }
    return depth.get(name);
  };
  for (const name of reads.keys()) of(name);
  const layers = [];
  for (const [name, at] of depth) (layers[at] ||= []).push(name);
  const place = new Map();
  layers.forEach((names, at) => {
    const mean = (name) => {
      const found = (reads.get(name) || []).map((one) => place.get(one) ?? 0);
      return found.length ? found.reduce((a, b) => a + b, 0) / found.length : 0;
    };
    if (at) names.sort((a, b) => mean(a) - mean(b));
    names.forEach((name, row) => place.set(name, row));
  });
  return layers.filter(Boolean);
};

infold.graph = (project) => {
  const { svg } = infold;
  const [width, height, aside, below] = infold.BOX;
  const layers = infold.layers(project);
  const at = new Map();
  const tallest = Math.max(...layers.map((names) => names.length));
  layers.forEach((names, column) =>
    names.forEach((name, row) => {
      const shift = tallest < 12 ? ((tallest - names.length) * (height + below)) / 2 : 0;
      at.set(name, [8 + column * (width + aside), 8 + shift + row * (height + below)]);
    })
  );
  const models = new Map(project.models.map((one) => [one.model, one]));
  const whole = [layers.length * (width + aside) - aside + 16, tallest * (height + below) - below + 16];
  const edges = project.models.flatMap((one) =>
    one.reads.filter((name) => at.has(name)).map((name) => {
      const [x1, y1] = at.get(name), [x2, y2] = at.get(one.model);
      const from = [x1 + width, y1 + height / 2], to = [x2, y2 + height / 2], bend = (to[0] - from[0]) / 2;
      return svg("path", { class: "edge", d: `M${from} C${from[0] + bend},${from[1]} ${to[0] - bend},${to[1]} ${to}` });
    })
  );
  const boxes = [...at].map(([name, [x, y]]) => {
    const model = models.get(name);
    const below = model ? infold.boxText(model) : "source";
    const content = [
      svg("rect", { class: "box", x, y, width, height, rx: 6 }),
      svg("text", { class: "strong", x: x + 24, y: y + 19 }, infold.clipped(name, 21)),
      svg("text", { x: x + 24, y: y + 36 }, below),
      svg("title", {}, name),
    ];
    if (!model) return svg("g", {}, content);
    const dot = svg("circle", { class: "dot", cx: x + 12, cy: y + 15, r: 4.5, "data-model": name });
    return svg("a", { href: infold.href("model", name), "aria-label": `${name}, ${below}` }, content, dot);
  });
  return svg("svg", { viewBox: `0 0 ${whole.join(" ")}`, width: whole[0], height: whole[1], role: "group", "aria-label": "Graph of sources and models; the table below has the same" }, edges, boxes);
};

infold.boxText = (model) => {
  if (model.materialization === "view") return "view";
  if (model.rows === null) return "not built yet";
  const ago = infold.ago(model.built_at);
  return infold.clipped(`${infold.number(model.rows)} rows${ago ? `, ${ago}` : ""}`, 27);
};
