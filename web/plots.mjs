// Proves the pages of `sim run --plot` and `repro --plot` in Chromium: node plots.mjs [FOLDER FOR
// PICTURES]
//
// No request leaves; a legend switches schedulers in every plot; what is saved is what is seen; no
// page is half empty or scrolls sideways, in light and dark. Environment: MARLINE (the program),
// CHROMIUM (the browser, /usr/bin/chromium unless said).

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const MARLINE = process.env.MARLINE ?? "marline";
const pictures = process.argv[2] ?? "pictures";
const folder = mkdtempSync(join(tmpdir(), "marline-plots-"));
const made = (name, ...args) => {
  const file = join(folder, `${name}.html`);
  execFileSync(MARLINE, [...args, "--plot", file], { stdio: ["ignore", "ignore", "pipe"] });
  return pathToFileURL(file).href;
};
const wrong = [];

async function main(browser) {
  const pages = {
    bars: made("bars", "sim", "run", "examples/handover", "--scheduler", "all", "--seeds", "2"),
    cut: made("cut", "sim", "run", "examples/cells", "--seeds", "2", "--duration", "10s"),
    repro: made("repro", "repro", "ols", "table-1", "--seeds", "1"),
  };
  const open = async (name, width, colorScheme) => {
    const context = await browser.newContext({ viewport: { width, height: 1000 }, colorScheme, acceptDownloads: true });
    const page = await context.newPage();
    page.on("request", (request) => {
      const url = request.url();
      if (url !== pages[name] && !/^(data|blob):/.test(url)) wrong.push(`${name} asks for ${url}`);
    });
    page.on("pageerror", (error) => wrong.push(`${name}: ${error.stack}`));
    page.on("console", (message) => message.type() === "error" && wrong.push(`${name}: ${message.text()}`));
    await page.goto(pages[name]);
    return page;
  };
  for (const name of Object.keys(pages)) {
    for (const [width, scheme] of [[1280, "light"], [1280, "dark"], [1920, "light"], [390, "light"]]) {
      const page = await open(name, width, scheme);
      // Nothing scrolls sideways but tables and commands, and plots take the page's width.
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${name} is wider than ${width}`);
      const rows = await page.$$eval("section > .figures", (all) => all.map((one) => {
        const boxes = [...one.querySelectorAll("figure")].map((figure) => figure.getBoundingClientRect());
        const first = boxes.filter((box) => Math.abs(box.top - boxes[0].top) < 5);
        return [first.reduce((sum, box) => sum + box.width, 0), one.getBoundingClientRect().width, boxes.length];
      }));
      for (const [used, wide, count] of rows) assert.ok(count === 1 || used > 0.9 * wide, `${name}: plots take ${used} of ${wide}`);
      // Every plot has a title in words with a unit, and no text is cut off by its edge.
      for (const title of await page.$$eval("figure svg", (all) => all.map((svg) => svg.getAttribute("aria-label"))))
        assert.match(title, /^[^_]*\([^()]+\)(: how often it is exceeded)?$/, title);
      const cut = await page.$$eval("section > .figures svg", (all) => all.flatMap((svg) => {
        const around = svg.getBoundingClientRect();
        return [...svg.querySelectorAll("text")].filter((text) => {
          const box = text.getBoundingClientRect();
          return text.textContent.trim() && (box.left < around.left - 1 || box.right > around.right + 1 || box.bottom > around.bottom + 1);
        }).map((text) => `${svg.getAttribute("aria-label")}: ${text.textContent.trim()}`);
      }));
      assert.deepEqual(cut, []);
      // Text is readable on its paper: WCAG's contrast of 4.5 at least.
      const contrast = await page.evaluate(() => {
        const light = (colour) => {
          const [r, g, b] = colour.match(/[\d.]+/g).map((v) => v / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
          return 0.2126 * r + 0.7152 * g + 0.0722 * b;
        };
        const ink = light(getComputedStyle(document.querySelector("svg text")).fill);
        const paper = light(getComputedStyle(document.body).backgroundColor);
        return (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
      });
      assert.ok(contrast >= 4.5, `${name}, ${scheme}: ${contrast}`);
      await page.screenshot({ path: join(pictures, `${name}-${width}-${scheme}.png`) , fullPage: width === 1280 });
      await page.context().close();
    }
  }

  // What was cut is marked and said.
  const cut = await open("cut", 1280, "light");
  assert.ok((await cut.textContent("main")).includes("An arrow is an interval that goes on beyond the axis"));

  // Sweeps: schedulers stand upon each other at each value, which are as far apart as each other.
  const sweep = await open("repro", 1280, "light");
  const places = await sweep.$$eval("section > .figures svg", (all) => all.map((svg) => [...svg.querySelectorAll("g.series")]
    .map((part) => [part.dataset.name, [...part.querySelectorAll("polygon")].map((one) => { const box = one.getBBox(); return Math.round(box.x + box.width / 2); })])
    .filter(([, at]) => at.length > 1)).filter((one) => one.length > 1));
  assert.ok(places.length > 0, "no sweep");
  for (const lines of places) {
    const at = [...new Set(lines.flatMap(([, all]) => all))].sort((a, b) => a - b);
    const gaps = at.slice(1).map((x, i) => x - at[i]).filter((gap) => gap > 2);
    assert.ok(gaps.every((gap) => gap > 60 && Math.abs(gap - gaps[0]) <= 3), `markers stand at ${at}`);
  }

  // The legend: 17 schedulers; each can be switched off in all plots, and on again.
  const page = await open("bars", 1280, "light");
  const seen = (name) => page.$$eval(`g.series[data-name="${name}"]`, (all) => all.filter((one) => getComputedStyle(one).display !== "none").length);
  const names = await page.$$eval(".switches input", (all) => all.map((one) => one.name));
  assert.equal(names.length, 17);
  const all = await seen("redundant");
  assert.ok(all > 5, `${all} groups`);
  await page.locator('g.key[data-name="redundant"]').first().click();
  assert.equal(await seen("redundant"), 0);
  assert.ok(await seen("edpf") > 5);
  assert.equal(await page.isChecked('.switches input[name="redundant"]'), false);
  await page.locator('g.key[data-name="redundant"]').first().press("Enter");
  assert.equal(await seen("redundant"), all);
  await page.click('[data-switch="none"]');
  assert.equal(await seen("edpf"), 0);
  await page.check('.switches input[name="edpf"]');
  assert.ok(await seen("edpf") > 5 && (await seen("hedge")) === 0);

  // Saved: what is seen and nothing else, in a file that other programs read.
  const figure = page.locator("figure", { has: page.locator("g.key") }).first();
  const save = async (text) => {
    const [download] = await Promise.all([page.waitForEvent("download"), figure.getByRole("button", { name: text }).click()]);
    const file = join(pictures, `saved.${text.toLowerCase()}`);
    await download.saveAs(file);
    assert.match(download.suggestedFilename(), new RegExp(`\\.${text.toLowerCase()}$`));
    return readFileSync(file);
  };
  const svg = (await save("SVG")).toString();
  assert.ok(svg.startsWith("<svg") && svg.includes('xmlns="http://www.w3.org/2000/svg"'));
  assert.ok(svg.includes('class="series" data-name="edpf"') && !/class="series[^"]*" data-name="hedge"/.test(svg));
  const png = await save("PNG");
  assert.equal(png.subarray(1, 4).toString(), "PNG");
  assert.equal(png.readUInt32BE(16), 1560);
  assert.ok(png.length > 10_000, `${png.length} bytes`);
  // White paper, whatever the screen's.
  const corner = await page.evaluate(async (data) => {
    const image = new Image();
    image.src = `data:image/png;base64,${data}`;
    await image.decode();
    const canvas = Object.assign(document.createElement("canvas"), { width: image.width, height: image.height });
    const drawing = canvas.getContext("2d");
    drawing.drawImage(image, 0, 0);
    return [...drawing.getImageData(2, 2, 1, 1).data];
  }, png.toString("base64"));
  assert.deepEqual(corner, [255, 255, 255, 255]);
  assert.deepEqual(wrong, []);
  console.log(`the plots hold; pictures in ${pictures}`);
}

mkdirSync(pictures, { recursive: true });
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
let failed = null;
try {
  await main(browser);
} catch (error) {
  failed = error;
}
await browser.close();
rmSync(folder, { recursive: true, force: true });
if (failed) { console.error(failed, wrong); process.exit(1); }
