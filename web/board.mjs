// Holds contrib/grafana-board.json against Grafana's own types: node board.mjs. What is misspelt,
// or is no value of its field, is an error of TypeScript's.

import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const here = new URL(".", import.meta.url).pathname;
const board = readFileSync(join(here, "../contrib/grafana-board.json"), "utf8");
// Beside node_modules, where it finds the types. A literal, as types of imported JSON are too wide.
const folder = mkdtempSync(join(here, "board-"));
const file = join(folder, "board.ts");
writeFileSync(file, `import type { Dashboard, Panel } from "@grafana/schema";
type Own = Omit<Panel, "fieldConfig" | "options"> & { fieldConfig: { defaults: object; overrides: object[] }; options: object };
export const board: Partial<Omit<Dashboard, "panels">> & { panels: Own[] } = ${board};
`);
try {
  execFileSync("npx", ["tsc", "--noEmit", "--strict", "--skipLibCheck", "--module", "esnext", "--moduleResolution", "bundler", "--target", "es2022",
    "--types", "", "--ignoreConfig", file], { cwd: here, stdio: "inherit" });
} catch {
  console.error("contrib/grafana-board.json is not what Grafana reads");
  process.exitCode = 1;
} finally {
  rmSync(folder, { recursive: true });
}
