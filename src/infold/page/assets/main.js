"use strict";
/* Which page is shown, by the part of the address after #. */

infold.route = () => {
  const [page, ...rest] = location.hash.replace(/^#\/?/, "").split("/");
  return [page || "project", rest.length ? decodeURIComponent(rest.join("/")) : undefined];
};

infold.shown = 0;

infold.show = async () => {
  const main = document.getElementById("main");
  infold.shown += 1;
  const mine = infold.shown;
  let page = "project", of;
  try {
    [page, of] = infold.route();
    infold.project ||= await infold.load("project");
    if (infold.project.error) throw new Error(infold.project.error.text);
    infold.head(page);
    const draw = Object.hasOwn(infold.pages, page) ? infold.pages[page] : null;
    if (!draw) throw new Error("There is no such page.");
    const fresh = infold.el("div");
    const drawn = draw(fresh, of);
    if (mine === infold.shown) {
      main.replaceChildren(fresh);
      window.scrollTo(0, 0);
    }
    await drawn;
  } catch (error) {
    if (mine === infold.shown) main.replaceChildren(infold.error({ text: error.message }));
  }
  document.title = [main.querySelector("h1")?.textContent.trim() || page, infold.project?.project, "infold"].filter(Boolean).join(" · ");
  document.body.dataset.shown = `${page}${of === undefined ? "" : `/${of}`}`;
};

infold.head = (page) => {
  document.getElementById("project").textContent = infold.project.project;
  document.getElementById("target").textContent = infold.project.target;
  document.getElementById("made").textContent = `infold ${infold.project.infold}; as of ${infold.when(infold.project.made_at)} UTC.`;
  const current = { model: "project", session: "project", run: "runs" }[page] || page;
  for (const link of document.querySelectorAll("nav a")) {
    const own = link.getAttribute("href").slice(2) || "project";
    if (own === current) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
};

addEventListener("hashchange", () => {
  infold.show();
  document.getElementById("main").focus({ preventScroll: true });
});
addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
    event.preventDefault();
    infold.openSearch();
  }
});
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault(); // the part after # is the page
  document.getElementById("main").focus();
});
document.getElementById("find").addEventListener("click", infold.openSearch);
infold.show();
