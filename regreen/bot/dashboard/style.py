"""The dashboard's one style sheet and its one script; both stand in each page and are allowed by their hash."""

from __future__ import annotations

STYLE = """
:root { color-scheme: light dark; --back: #fff; --ink: #1b1f24; --quiet: #57606a; --line: #d0d7de; --soft: #f6f8fa;
  --link: #0757b5; --good: #116329; --good-back: #dcf5e3; --bad: #a40e26; --bad-back: #ffe5e5; --busy: #0757b5;
  --busy-back: #dff0ff; --wait-back: #eceff2; }
@media (prefers-color-scheme: dark) { :root { --back: #0f1419; --ink: #e4e9ee; --quiet: #a3adb8; --line: #39424c;
  --soft: #1a2027; --link: #7cb8ff; --good: #7ee2a0; --good-back: #123524; --bad: #ffa3a8; --bad-back: #47161b;
  --busy: #9ccbff; --busy-back: #12304f; --wait-back: #29313a; } }
* { box-sizing: border-box; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 0; background: var(--back); color: var(--ink); }
main { overflow-wrap: anywhere; }
header, main { max-width: 1180px; margin: 0 auto; padding: .8rem 1rem; }
header { display: flex; flex-wrap: wrap; gap: .3rem 1rem; align-items: center; border-bottom: 1px solid var(--line); }
nav { display: flex; flex-wrap: wrap; gap: .2rem .2rem; flex: 1; }
nav a { padding: .25rem .6rem; border-radius: .4rem; text-decoration: none; color: var(--ink); }
nav a[aria-current] { background: var(--wait-back); font-weight: 600; }
a { color: var(--link); }
a:focus-visible, button:focus-visible, input:focus-visible, select:focus-visible, summary:focus-visible, pre:focus-visible, .wide:focus-visible {
  outline: 3px solid var(--link); outline-offset: 2px; }
.skip { position: absolute; left: -99rem; } .skip:focus { left: 1rem; background: var(--back); padding: .5rem; }
.hidden { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
h1 { font-size: 1.4rem; margin: .6rem 0; overflow-wrap: anywhere; } h2 { font-size: 1.15rem; margin: 1.6rem 0 .5rem; }
h3 { font-size: 1rem; margin: 1.1rem 0 .3rem; overflow-wrap: anywhere; }
table { border-collapse: collapse; width: 100%; position: relative; }
th, td { text-align: left; padding: .35rem .6rem; border-bottom: 1px solid var(--line); vertical-align: top; }
td { overflow-wrap: break-word; max-width: 18rem; }
td[data-label="what"], td[data-label="detail"], td[data-label="why"], td[data-label="message"], td[data-label="reason"],
td[data-label="test"], td[data-label="path"], td[data-label="delivery"] { overflow-wrap: anywhere; max-width: none; }
th { color: var(--quiet); font-weight: 500; white-space: nowrap; }
pre { background: var(--soft); border: 1px solid var(--line); border-radius: .4rem; padding: .7rem; overflow: auto;
  max-height: 34rem; font: 13px/1.45 ui-monospace, monospace; }
.diff ins { color: var(--good); background: var(--good-back); text-decoration: none; }
.diff del { color: var(--bad); background: var(--bad-back); text-decoration: none; }
img, svg { max-width: 100%; height: auto; } img { background: #fff; border-radius: .4rem; }
.wide { overflow-x: auto; margin: .8rem 0; }
.facts { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1rem; margin: .6rem 0; }
.facts dt { color: var(--quiet); } .facts dd { margin: 0; overflow-wrap: anywhere; }
.state { padding: .05rem .5rem; border-radius: .6rem; background: var(--wait-back); color: var(--ink); white-space: nowrap;
  display: inline-block; max-width: 16rem; overflow: hidden; text-overflow: ellipsis; vertical-align: middle; }
.done, .fixed, .found, .accepted, .allow, .green, .pass, .low { background: var(--good-back); color: var(--good); }
.failed, .denied, .deny, .red, .fail, .stillred, .critical, .high { background: var(--bad-back); color: var(--bad); }
.running { background: var(--busy-back); color: var(--busy); }
.none, .quiet { color: var(--quiet); } .warn { background: var(--bad-back); color: var(--bad); padding: .5rem .8rem; border-radius: .4rem; }
.later { margin-top: 1.2rem; } .card { border: 1px solid var(--line); border-radius: .5rem; padding: .2rem .9rem .7rem; margin: .7rem 0; }
form.filters { display: flex; flex-wrap: wrap; gap: .5rem .7rem; align-items: end; margin: .6rem 0 1rem; }
form.filters label { display: grid; font-size: .85rem; color: var(--quiet); }
form.act { display: inline-block; margin: .3rem .5rem .3rem 0; }
input, select, button { font: inherit; color: var(--ink); background: var(--back); border: 1px solid var(--quiet);
  border-radius: .4rem; padding: .3rem .6rem; min-height: 2.2rem; max-width: 100%; }
button { background: var(--soft); cursor: pointer; }
.pager { margin: 1rem 0; } details { margin: .4rem 0; } summary { cursor: pointer; overflow-wrap: anywhere; }
.strip { display: inline-flex; gap: 2px; vertical-align: middle; align-items: end; }
.strip a { display: block; width: 12px; height: 1.5rem; border-radius: 2px; background: var(--quiet); }
.strip .green { background: var(--good); height: .9rem; } .strip .red { background: var(--bad); }
.body { white-space: pre-wrap; overflow-wrap: anywhere; }
.plot text { fill: var(--ink); font-size: 12px; } .plot .axis { stroke: var(--quiet); } .plot .ideal { stroke: var(--quiet);
  stroke-dasharray: 5 4; } .plot .dot { fill: var(--link); } .plot .span { stroke: var(--link); stroke-width: 2; }
@media (max-width: 640px) {
  nav { order: 3; flex: 1 0 100%; } nav a { padding: .2rem .45rem; } header strong { flex: 1; }
  thead { position: absolute; clip-path: inset(50%); width: 1px; height: 1px; overflow: hidden; }
  table, tbody, tr, td { display: block; width: 100%; }
  tr { border: 1px solid var(--line); border-radius: .5rem; margin: .6rem 0; padding: .3rem .2rem; }
  td { border: 0; padding: .15rem .6rem; max-width: none; overflow-wrap: anywhere; } td:empty { display: none; }
  td::before { content: attr(data-label) ": "; color: var(--quiet); }
  .wide > * { width: 44rem; max-width: none; }
  .facts { grid-template-columns: 1fr; gap: 0; } .facts dd { margin-bottom: .4rem; }
}
"""

# Times in the reader's zone; a running job's part of the page fetched anew until it has ended, then the page whole.
SCRIPT = """
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
"""
