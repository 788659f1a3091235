// Writes javascript.lcov beside itself: the reports of jest and vitest, and for other files what V8 counted, as LCOV.
"use strict";
const fs = require("fs");
const path = require("path");
const { fileURLToPath } = require("url");

const HOME = "/work/.regreen";
const wanted = new Set(fs.readFileSync(`${HOME}/javascript.paths`, "utf8").split("\n").filter(Boolean).map((one) => path.join(__dirname, "..", one)));
const records = new Map();

for (const run of list(`${HOME}/lcov`)) {
  const root = read(`${HOME}/lcov/${run}/root`);
  for (const record of read(`${HOME}/lcov/${run}/lcov.info`).split("end_of_record")) {
    const named = /^SF:(.+)$/m.exec(record);
    const file = named && path.resolve(root, named[1].trim());
    if (file && wanted.has(file)) add(file, record.match(/^(?:DA|BRDA):.+$/gm) || []);
  }
}

let ran = records.size > 0;
const seen = new Map();
for (const name of list(`${HOME}/v8`)) {
  let report;
  try {
    report = JSON.parse(read(`${HOME}/v8/${name}`));
  } catch {
    continue; // the process was killed while it wrote
  }
  for (const script of report.result || []) {
    if (!script.url.startsWith("file:///work/") || script.url.includes("/node_modules/")) continue;
    const file = fileURLToPath(script.url.split("?")[0]);
    ran = ran || !file.startsWith(`${HOME}/`);
    if (wanted.has(file) && !records.has(file)) merge(file, script.functions);
  }
}
for (const file of wanted) {
  // a file that no process loaded has not run at all; one whose code was transformed cannot be told
  if (ran && !records.has(file) && seen.get(file) !== null) add(file, countLines(file));
}
if (records.size) {
  const text = [...records].map(([file, rows]) => `SF:${file}\n${rows.join("\n")}\nend_of_record\n`);
  fs.writeFileSync(`${HOME}/javascript.lcov`, text.join(""));
}

function add(file, rows) {
  records.set(file, [...(records.get(file) || []), ...rows]);
}

function merge(file, functions) {
  const text = read(file);
  const whole = functions.flatMap((one) => one.ranges);
  if (Math.max(...whole.map((range) => range.endOffset)) !== text.length) {
    seen.set(file, seen.get(file) || null); // not the text of the file: offsets mean nothing here
    return;
  }
  const hits = new Uint8Array(text.length);
  whole.sort((a, b) => b.endOffset - b.startOffset - (a.endOffset - a.startOffset));
  for (const range of whole) hits.fill(range.count ? 1 : 0, range.startOffset, range.endOffset);
  const before = seen.get(file);
  if (before) before.forEach((hit, at) => (hits[at] |= hit));
  seen.set(file, hits);
}

function countLines(file) {
  const hits = seen.get(file);
  const rows = [];
  let at = 0;
  let comment = false;
  for (const [index, line] of read(file).split("\n").entries()) {
    const code = line.trim();
    comment = comment || code.startsWith("/*");
    const executable = !comment && /[\w$'"`]/.test(code) && !code.startsWith("//") && !/^(?:import|export type|type|interface)\b/.test(code);
    if (comment && code.includes("*/")) comment = false;
    const start = at + line.length - line.trimStart().length;
    if (executable) rows.push(`DA:${index + 1},${hits && hits.subarray(start, start + code.length).includes(1) ? 1 : 0}`);
    at += line.length + 1;
  }
  return rows;
}

function list(folder) {
  return fs.existsSync(folder) ? fs.readdirSync(folder) : [];
}

function read(file) {
  return fs.existsSync(file) ? fs.readFileSync(file, "utf8") : "";
}
