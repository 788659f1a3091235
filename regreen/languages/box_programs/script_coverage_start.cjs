// Loaded into every Node process of the tests by NODE_OPTIONS: asks jest and vitest for their own coverage, because
// what V8 sees of them is transformed code. V8 itself measures all other runners (NODE_V8_COVERAGE).
"use strict";
try {
  const fs = require("fs");
  const path = require("path");
  const runner = /[/\\](jest|vitest)(?:[/\\][^/\\]+)*[/\\](?:jest\.js|vitest\.mjs)$/.exec(fs.realpathSync(process.argv[1] || "."));
  const paths = fs.readFileSync(path.join(__dirname, "javascript.paths"), "utf8").split("\n").filter(Boolean).map((one) => path.join(__dirname, "..", one));
  const folder = `/work/.regreen/lcov/${process.pid}`;
  const inside = paths.map((one) => path.relative(process.cwd(), one)).filter((one) => !one.startsWith(".."));
  let added = [];
  if (runner && runner[1] === "jest") {
    added = ["--coverage", "--coverageReporters=lcovonly", `--coverageDirectory=${folder}`, "--coverageThreshold={}"];
    added.push(...inside.map((one) => `--collectCoverageFrom=${one}`));
  } else if (runner && ["v8", "istanbul"].some(hasProvider)) {
    const provider = ["v8", "istanbul"].find(hasProvider);
    added = ["--coverage.enabled=true", `--coverage.provider=${provider}`, "--coverage.reporter=lcovonly"];
    added.push(`--coverage.reportsDirectory=${folder}`, "--coverage.reportOnFailure=true", ...inside.map((one) => `--coverage.include=${one}`));
    for (const kind of ["lines", "functions", "branches", "statements"]) added.push(`--coverage.thresholds.${kind}=0`);
  }
  if (added.length) {
    fs.mkdirSync(folder, { recursive: true });
    fs.writeFileSync(`${folder}/root`, process.cwd());
    const end = process.argv.indexOf("--"); // what follows it is the names of files
    process.argv.splice(end < 0 ? process.argv.length : end, 0, ...added);
  }
  function hasProvider(name) {
    try {
      return Boolean(require.resolve(`@vitest/coverage-${name}/package.json`, { paths: [process.cwd()] }));
    } catch {
      return false;
    }
  }
} catch {
  // the tests run without coverage
}
