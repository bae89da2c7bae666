"use strict";
/* Runs from the page, where `infold ui --allow-runs` lets it start any. */

/* A button that runs models (all for none), and how the last run of this page goes. */
infold.runPart = (label, models) => {
  const place = infold.el("div", { class: "start" });
  infold.drawRun(place, label, models, false);
  return place;
};

infold.drawRun = (place, label, models, watched) =>
  infold.drawLastRun(place, label, models, watched).catch((error) => place.append(infold.notice("bad", error.message)));

/* `watched` says that a run was seen here while it went on: at its end all data is asked for anew. */
infold.drawLastRun = async (place, label, models, watched) => {
  const { el } = infold;
  if (document.documentElement.dataset.form === "files") return;
  const run = await infold.fromServer("run");
  if (!run.allowed || (watched && !place.isConnected)) return;
  if (watched && !run.running) return infold.showAnew();
  const button = el("button", { type: "button", disabled: run.running }, run.running ? "Running…" : label);
  button.addEventListener("click", () => infold.startRun(place, label, models, button));
  place.replaceChildren(...[button, infold.runOutput(run)].filter(Boolean));
  if (run.running) setTimeout(() => infold.drawRun(place, label, models, true), 1000);
};

infold.startRun = async (place, label, models, button) => {
  button.disabled = true;
  const answer = await fetch("run", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ models }) }).catch(() => null);
  const refused = !answer ? "The server of this page has ended." : answer.status === 409 ? "Another run of this page goes on." : answer.ok ? "" : `The server answered ${answer.status}.`;
  if (refused) return place.append(infold.notice("bad", refused));
  infold.drawRun(place, label, models, true);
};

/* What the last run printed; open while it goes on, and if it failed. */
infold.runOutput = (run) => {
  const { el } = infold;
  if (!run.running && run.exit_code === null) return null;
  const [text, kind] = run.running ? ["running", ""] : run.exit_code === 0 ? ["done", "good"] : [`exit code ${run.exit_code}`, "bad"];
  const of = run.models.length ? `The run of ${run.models.join(", ")} with all it reads ` : "The run ";
  return el("details", { open: run.running || run.exit_code !== 0 }, el("summary", {}, of, infold.pill(text, kind)), el("pre", {}, run.lines.join("\n") || "…"));
};

infold.showAnew = () => {
  infold.known.clear();
  infold.project = null;
  infold.show();
};
