// Tests what the page makes of histories, without a browser: node units.mjs
import assert from "node:assert/strict";
import { build } from "esbuild";

const built = await build({ entryPoints: ["src/history.ts"], bundle: true, format: "esm", write: false });
const { Track } = await import(`data:text/javascript;base64,${Buffer.from(built.outputFiles[0].text).toString("base64")}`);

const row = (value) => [value];
const series = (key, end, values) => ({ of: "path", key, name: key, end, rows: values.map(row) });
async function loaded(at, all, step_s = 1) {
  const history = { version: 1, span: "10m", step_s, at, path_columns: ["rtt_ms"], live_columns: [], series: all };
  globalThis.fetch = async () => ({ ok: true, json: async () => history });
  const track = new Track("10m");
  await track.load();
  return track;
}
const look = (at, paths) => ({ at, paths: Object.entries(paths).map(([key, value]) => ({ key, row: row(value) })), live: [] });

// While a history is read over a slow line, looks come: later series have rows that `at` does not
// have.
let track = await loaded([10, 11, 12], [
  series("a", 12, [0, 1, 2]), series("b", 13.01, [0, 1, 2, 3]), series("c", 15.02, [0, 1, 2, 3, 4, 5]), series("new", 15.02, [4, 5]),
]);
for (const key of ["a", "b", "c"]) assert.deepEqual(track.column("path", key, "rtt_ms"), [0, 1, 2], key);
assert.deepEqual(track.column("path", "new", "rtt_ms"), [null, null, null]);
track = await loaded([60, 120], [series("a", 240.2, [1, 2, 3, 4])], 60);
assert.deepEqual(track.column("path", "a", "rtt_ms"), [1, 2], "minutes");

// A path whose last figures have left the ten minutes is forgotten.
track = await loaded([0], [series("gone", 0, [7]), series("here", 0, [7])]);
for (let at = 1; at < 600; at++) track.push(look(at, { here: at }));
assert.deepEqual(track.keys("path"), ["gone", "here"]);
track.push(look(600, { here: 600 }));
assert.deepEqual(track.keys("path"), ["here"]);
assert.equal(track.at.length, 600);
console.log("histories are as they should be");
