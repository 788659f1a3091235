
"use strict";
const local = (root) => root.querySelectorAll("time").forEach((each) => {
  const at = new Date(each.dateTime);
  if (isNaN(at)) return;
  const exact = at.toLocaleString(undefined, {dateStyle: "medium", timeStyle: "short"});
  const seconds = (at - Date.now()) / 1000, past = Math.abs(seconds);
  const [size, unit] = past < 60 ? [1, "second"] : past < 3600 ? [60, "minute"] : past < 86400 ? [3600, "hour"] : [86400, "day"];
  const near = new Intl.RelativeTimeFormat(undefined, {numeric: "auto"}).format(Math.round(seconds / size), unit);
  each.textContent = past < 14 * 86400 ? near : exact;
  each.title = `${exact} (${each.dateTime})`;
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
