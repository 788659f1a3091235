
"use strict";
const local = (root) => root.querySelectorAll("time").forEach((each) => {
  const at = new Date(each.dateTime);
  if (isNaN(at)) return;
  each.textContent = at.toLocaleString(undefined, {dateStyle: "medium", timeStyle: "medium"});
  each.title = each.dateTime;
});
local(document);
const follow = async () => {
  const now = document.querySelector("[data-live]");
  if (!now) return;
  try {
    const answer = await fetch(location.href, {credentials: "same-origin", redirect: "error"});
    if (answer.ok) {
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const fresh = page.querySelector("[data-live]");
      if (!fresh) { location.reload(); return; }
      if (fresh.innerHTML !== now.dataset.was) {
        now.dataset.was = fresh.innerHTML;
        now.replaceChildren(...fresh.childNodes);
        local(now);
      }
    }
  } catch (error) { /* the server is away: try again */ }
  setTimeout(follow, document.hidden ? 15000 : 2000);
};
setTimeout(follow, 2000);
