// Runs beside a project's own TypeScript: makes the quick fixes of its language service that leave one choice (of several
// for an unused declaration, the first), and writes the files.
// Arguments: those of the `tsc` call that failed.
"use strict";
const fs = require("fs");
const path = require("path");
const ts = require(require.resolve("typescript", { paths: [process.cwd()] }));

// Fixes of the fault itself; others silence the compiler, guess types or invent members.
const KINDS = ["spelling", "import", "unusedIdentifier", "fixOverrideModifier", "addMissingAwait", "addMissingConst", "addMissingNewOperator", "forgottenThisPropertyAccess", "fixAwaitInSyncFunction", "extendsInterfaceBecomesImplements", "convertToTypeOnlyImport", "requireInTs", "add-annotation", "fixImportNonExportedMember"];
const MOST_FIXES = 200;

function findProjects() {
  const words = process.argv.slice(2);
  const parsed = ts.parseCommandLine(words.filter((word) => word !== "-b" && word !== "--build"));
  const named = parsed.options.project ? [parsed.options.project] : words.some((word) => word === "-b" || word === "--build") ? parsed.fileNames : [];
  const found = named.map((name) => path.resolve(fs.existsSync(name) && fs.statSync(name).isDirectory() ? path.join(name, "tsconfig.json") : name));
  if (!found.length && parsed.fileNames.length) return [{ fileNames: parsed.fileNames.map((name) => path.resolve(name)), options: parsed.options }];
  const root = ts.findConfigFile(process.cwd(), ts.sys.fileExists);
  const waiting = found.length ? found : root ? [root] : [];
  const projects = [];
  for (const file of waiting) {
    const read = ts.getParsedCommandLineOfConfigFile(file, {}, { ...ts.sys, onUnRecoverableConfigFileDiagnostic() {} });
    if (!read) continue;
    projects.push(read);
    for (const one of read.projectReferences || []) {
      const next = ts.resolveProjectReferencePath(one);
      if (!waiting.includes(next)) waiting.push(next);
    }
  }
  return projects;
}

const texts = new Map();
let made = 0;

function fixProject({ fileNames, options }) {
  const versions = new Map();
  const read = (file) => texts.get(file) ?? ts.sys.readFile(file);
  const host = {
    ...ts.sys,
    getScriptFileNames: () => fileNames,
    getScriptVersion: (file) => String(versions.get(file) || 0),
    getScriptSnapshot: (file) => (read(file) === undefined ? undefined : ts.ScriptSnapshot.fromString(read(file))),
    getCurrentDirectory: () => process.cwd(),
    getCompilationSettings: () => options,
    getDefaultLibFileName: ts.getDefaultLibFilePath,
    readFile: read,
    useCaseSensitiveFileNames: () => ts.sys.useCaseSensitiveFileNames,
  };
  const service = ts.createLanguageService(host);
  const findFix = (file) => {
    for (const diagnostic of [...service.getSyntacticDiagnostics(file), ...service.getSemanticDiagnostics(file)]) {
      if (diagnostic.category !== ts.DiagnosticCategory.Error || diagnostic.start === undefined) continue;
      const fixes = service.getCodeFixesAtPosition(file, diagnostic.start, diagnostic.start + diagnostic.length, [diagnostic.code], ts.getDefaultFormatCodeSettings("\n"), {});
      const fit = fixes.filter((fix) => KINDS.includes(fix.fixName) && fix.changes.every((change) => texts.has(change.fileName) || ts.sys.fileExists(change.fileName)));
      const choices = fit.filter((fix) => fix.fixName === fit[0].fixName);
      if (choices.length === 1 || (choices.length && choices[0].fixName === "unusedIdentifier")) return choices[0];
    }
    return undefined;
  };
  for (const file of fileNames) {
    for (let fix = findFix(file); fix && made < MOST_FIXES; fix = findFix(file), made++) {
      for (const { fileName, textChanges } of fix.changes) {
        let text = read(fileName);
        for (const { span, newText } of [...textChanges].sort((a, b) => b.span.start - a.span.start)) {
          text = text.slice(0, span.start) + newText + text.slice(span.start + span.length);
        }
        texts.set(fileName, text);
        versions.set(fileName, (versions.get(fileName) || 0) + 1);
      }
    }
  }
}

findProjects().forEach(fixProject);
for (const [file, text] of texts) fs.writeFileSync(file, text);
