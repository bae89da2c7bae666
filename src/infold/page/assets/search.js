"use strict";
/* Ctrl-K: a model, column, source, tag or run. */

infold.searchable = () => {
  const { models, sources } = infold.project;
  const found = models.map((one) => [one.model, "model", infold.href("model", one.model)]);
  for (const one of sources) {
    const reader = models.find((model) => model.reads.includes(one.source));
    found.push([one.source, "source", reader ? infold.href("model", reader.model) : infold.href()]);
  }
  for (const one of models) for (const column of one.columns) found.push([column, `column of ${one.model}`, infold.href("model", one.model)]);
  for (const one of models) for (const tag of one.tags) found.push([tag, `tag of ${one.model}`, infold.href("model", one.model)]);
  for (const run of infold.runsFound || []) found.push([infold.when(run.started_at), `run, ${run.state}, ${run.run}`, infold.href("run", run.run)]);
  return found;
};

/* Those with all words in them, names that begin with the first before others. */
infold.hits = (words, entries) => {
  const parts = words.toLowerCase().split(/\s+/).filter(Boolean);
  const rank = ([name, kind]) => {
    const text = `${name} ${kind}`.toLowerCase();
    if (!parts.every((part) => text.includes(part))) return -1;
    if (!parts.length) return kind === "model" ? 1 : -1;
    const low = name.toLowerCase();
    return (low === parts[0] ? 4 : low.startsWith(parts[0]) ? 3 : low.includes(parts[0]) ? 2 : 1) + (kind === "model" ? 0.5 : 0);
  };
  return entries.map((one) => [rank(one), one]).filter(([value]) => value >= 0).sort((a, b) => b[0] - a[0]).slice(0, 40).map(([, one]) => one);
};

infold.openSearch = () => {
  const dialog = document.getElementById("search"), field = document.getElementById("words"), list = document.getElementById("hits");
  if (!infold.project || dialog.open) return;
  let at = 0;
  const show = () => {
    const hits = infold.hits(field.value, infold.searchable());
    const id = field.value.trim();
    if (id && infold.isServed() && infold.project.models.some((one) => one.materialization === "sessions")) hits.push([id, "look up a session", infold.href("session", id)]);
    at = Math.max(0, Math.min(at, hits.length - 1));
    list.replaceChildren(...hits.map(([name, kind, href], row) => infold.el("li", {}, infold.el("a", { href, class: row === at ? "on" : null, onclick: () => dialog.close() }, infold.el("span", {}, name), infold.el("span", { class: "faint" }, kind)))));
    if (!hits.length) list.replaceChildren(infold.el("li", { class: "faint" }, "Nothing has this name."));
    list.querySelector(".on")?.scrollIntoView({ block: "nearest" });
  };
  field.oninput = () => { at = 0; show(); };
  field.onkeydown = (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      at += event.key === "ArrowDown" ? 1 : -1;
      show();
      event.preventDefault();
    } else if (event.key === "Enter") {
      list.querySelector(".on")?.click();
    }
  };
  field.value = "";
  show();
  dialog.showModal();
  field.focus();
  infold.loadOrThrow("runs").then(({ runs }) => { infold.runsFound = runs; show(); }, () => {});
};
