// Builds the page into the program's sources, or with a folder as argument into that.
import { build } from "esbuild";
import { copyFile, mkdir, readFile } from "node:fs/promises";
import { gzipSync } from "node:zlib";

const to = process.argv[2] ?? new URL("../crates/marline-cli/src/web/built", import.meta.url).pathname;
// What a phone loads over `ssh -L` by a bad link.
const MOST_COMPRESSED = 150_000;

await mkdir(to, { recursive: true });
await build({
  entryPoints: { page: "src/main.ts" },
  outdir: to,
  bundle: true,
  minify: true,
  format: "iife",
  target: "es2022",
  charset: "utf8",
  legalComments: "inline",
});
for (const file of ["index.html", "icon.svg"]) await copyFile(`src/${file}`, `${to}/${file}`);

let compressed = 0;
for (const file of ["index.html", "icon.svg", "page.js", "page.css"])
  compressed += gzipSync(await readFile(`${to}/${file}`), { level: 9 }).length;
console.log(`the page has ${compressed} bytes compressed`);
if (compressed > MOST_COMPRESSED) throw new Error(`more than ${MOST_COMPRESSED}`);
