"use strict";
/* A session: its events by arrival on a line, and which run made it what it is. */

infold.isServed = () => document.documentElement.dataset.form === "served";

infold.SESSION_NOTE = "Single sessions are read from the tables by infold ui; an export has none.";

/* Where sessions can be looked up: a field, and some of the newest. */
infold.sessionsPart = (name) => {
  const { el } = infold;
  if (!infold.isServed()) return infold.section("Sessions", el("p", { class: "note" }, infold.SESSION_NOTE));
  const field = el("input", { type: "search", "aria-label": "Id of a session", placeholder: "session_id", autocomplete: "off", spellcheck: "false" });
  const open = () => field.value.trim() && (location.hash = infold.href("session", field.value.trim()));
  field.addEventListener("keydown", (event) => event.key === "Enter" && open());
  const newest = el("div", {}, el("p", { class: "faint" }, "Reading the newest\u2026"));
  infold.load(`sessions/${name}`).then(
    (found) => {
      if (found.error) return newest.replaceChildren(infold.notice("", found.error.text));
      const others = found.sessions.length ? Object.keys(found.sessions[0]).filter((key) => !key.startsWith("session_")).slice(0, 5) : [];
      const columns = [
        ["Session", "", (one) => infold.link(infold.clipped(one.session_id, 14), "session", one.session_id)],
        ["Start", "when", (one) => infold.clock(one.session_start)],
        ["End", "when", (one) => infold.clock(one.session_end)],
        ...others.map((key) => [key, "", (one) => (one[key] === null ? "NULL" : infold.clipped(String(one[key]), 40))]),
      ];
      newest.replaceChildren(found.sessions.length ? infold.table(columns, found.sessions, 10) : el("p", {}, "There are none."));
    },
    (error) => newest.replaceChildren(infold.notice("bad", error.message))
  );
  return infold.section("Sessions", el("p", {}, el("label", {}, "Look up a session: ", field), " ", el("button", { type: "button", onclick: open }, "Show")), el("h3", {}, "Some of the newest"), newest);
};

infold.pages.session = async (main, id) => {
  const { el } = infold;
  main.replaceChildren(el("p", { class: "faint" }, "Reading the session\u2026"));
  if (!infold.isServed()) return main.replaceChildren(infold.error({ text: infold.SESSION_NOTE }));
  const found = await infold.load(`session/${id}`);
  if (found.error) return main.replaceChildren(infold.error(found.error));
  main.replaceChildren(...found.sessions.flatMap(infold.sessionParts), found.more ? el("p", {}, `${infold.count(found.more, "more session")} of ${id}.`) : "");
};

infold.sessionParts = (session) => {
  const { el } = infold;
  const events = session.arrivals.reduce((sum, one) => sum + one.events, 0);
  const row = Object.entries(session.row || {}).map(([name, value]) => [name, value === null ? "NULL" : String(value)]);
  const picture = infold.sessionPicture(session);
  return [
    el("h1", {}, `Session of ${session.of.value ?? "NULL"} `, session.quarantine ? infold.pill("in quarantine", "warn") : ""),
    el("p", { class: "faint" }, infold.model(session.model), `, ${session.session_id}`),
    infold.facts([["Start", infold.clock(session.session_start)], ["End", infold.clock(session.session_end)], ["Lasts", infold.duration((Date.parse(session.session_end) - Date.parse(session.session_start)) / 1000)], ...row]),
    infold.section(
      "Its events, by arrival",
      session.why_no_events ? el("p", {}, `They are not listed: ${session.why_no_events}.`) : el("p", {}, `${infold.count(events, "event")} in ${session.input}.`),
      session.arrivals.length
        ? infold.table(
            [
              ["Received", "when", (one) => [one.run ? infold.run(one.run, infold.clock(one.received_at)) : "not known when", one.late ? [" ", infold.pill("late", "warn")] : ""]],
              ["Events", "number", (one) => infold.number(one.events)],
              ["First", "when", (one) => infold.clock(one.first)],
              ["Last", "when", (one) => infold.clock(one.last)],
              ["Files", "long", (one) => infold.files(one)],
            ],
            session.arrivals
          )
        : ""
    ),
    infold.section(
      "What runs did to it",
      picture ? el("div", { class: "wide" }, picture) : "",
      session.runs.length
        ? infold.table(
            [
              ["When", "when", (one) => (one.run ? infold.run(one.run, infold.clock(one.at)) : infold.clock(one.at))],
              ["What", "", (one) => infold.pill(one.verb)],
              ["Before", "long", (one) => infold.sessionsText(one.before)],
              ["After", "long", (one) => infold.sessionsText(one.after)],
            ],
            session.runs
          )
        : el("p", {}, "No version of the table that is kept contains it."),
      session.notes.map((text) => el("p", { class: "note" }, text))
    ),
  ];
};

infold.sessionsText = (sessions) =>
  sessions === null
    ? "no longer kept"
    : sessions.length
      ? sessions.map((one) => infold.el("div", {}, `${infold.clock(one.session_start)} to ${infold.clock(one.session_end).slice(11)}${one.events === null || one.events === undefined ? "" : `, ${infold.count(one.events, "event")}`}`))
      : "nothing";

/* Arrivals and the sessions after each run, on one line of time. */
infold.sessionPicture = (session) => {
  const { svg } = infold;
  const lines = [
    ...session.arrivals.filter((one) => one.first && one.last).map((one) => [`${infold.count(one.events, "event")}${one.late ? ", late" : ""}`, one.late ? "bar warn" : "bar quiet", [[one.first, one.last]]]),
    ...session.runs.filter((one) => one.after).map((one) => [one.verb, "bar", one.after.map((after) => [after.session_start, after.session_end])]),
  ].map(([name, kind, parts]) => [name, kind, parts.map((pair) => pair.map((text) => Date.parse(text) / 1000))]);
  const ends = lines.flatMap(([, , parts]) => parts.flat());
  if (!ends.length) return null;
  const first = Math.min(...ends), last = Math.max(...ends, first + 1);
  const width = 900, left = 190, row = 22, height = lines.length * row + 22;
  const x = (at) => left + ((at - first) / (last - first)) * (width - left - 30);
  return svg(
    "svg",
    { viewBox: `0 0 ${width} ${height}`, width: "100%", class: "chart", role: "img", "aria-label": "Events by arrival, and the sessions after each run, on a line of time" },
    lines.map(([name, kind, parts], at) => [
      svg("text", { class: "strong", x: left - 8, y: at * row + 15, "text-anchor": "end" }, infold.clipped(name, 26)),
      svg("line", { class: "axis", x1: left, x2: width - 30, y1: at * row + 11, y2: at * row + 11 }),
      parts.map(([from, to]) => svg("rect", { class: kind, x: x(from) - 2, width: Math.max(4, x(to) - x(from) + 4), y: at * row + 5, height: row - 10, rx: 3 }, svg("title", {}, infold.range([from, to])))),
    ]),
    [first, last].map((at, end) => svg("text", { x: end ? width - 30 : left, y: height - 4, "text-anchor": end ? "end" : "start" }, infold.clock(infold.iso(at))))
  );
};
