// Proves the page against the program, in Chromium: node prove.mjs [FOLDER FOR PICTURES]
//
// First `marline demo --web`, as somebody sees it who has nothing yet. Then a server and a client
// over two emulated links on loopback, a download and a live stream between them. What the page
// shows is compared with `marline status --json`; a link dies and comes back; the buttons act; who
// has no token, or asks by another name, is refused; who asks from another host logs in.
// Environment: MARLINE (the program), CHROMIUM (the browser, /usr/bin/chromium unless said).

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import dgram from "node:dgram";
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import http from "node:http";
import net from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";

const MARLINE = process.env.MARLINE ?? "marline";
const pictures = process.argv[2] ?? "pictures";
// A picture of this many seconds of traffic shows lines, not points.
const SECONDS = Number(process.env.SECONDS_EACH ?? 25);
const home = mkdtempSync(join(tmpdir(), "marline-page-"));
const children = [];
// What a browser complained of.
const wrong = [];
const sleep = (seconds) => new Promise((done) => setTimeout(done, seconds * 1000));

function run(name, args, { out = false } = {}) {
  const env = { ...process.env, HOME: join(home, name.split(".")[0]), XDG_RUNTIME_DIR: join(home, "run"), XDG_STATE_HOME: "", XDG_CONFIG_HOME: "" };
  mkdirSync(env.HOME, { recursive: true });
  if (out) return execFileSync(MARLINE, args, { env, encoding: "utf8" });
  const child = spawn(MARLINE, args, { env, stdio: ["ignore", "pipe", "pipe"] });
  children.push(child);
  child.text = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (data) => (child.text += data));
  child.on("exit", () => (child.ended = true));
  return child;
}
async function until(what, test, seconds = 20) {
  for (const end = Date.now() + seconds * 1000; ; await sleep(0.1)) {
    const found = await test();
    if (found) return found;
    if (Date.now() > end) throw new Error(`${what}: not within ${seconds} s`);
  }
}
const logged = (child, pattern, seconds = 20) =>
  until(`${pattern} in the log`, () => {
    if (child.ended) throw new Error(child.text);
    return child.text.match(pattern);
  }, seconds);
function port(kind) {
  return new Promise((done) => {
    const socket = kind === "udp" ? dgram.createSocket("udp4") : net.createServer();
    const bound = () => { const { port } = socket.address(); socket.close(() => done(port)); };
    if (kind === "udp") socket.bind(0, "127.0.0.1", bound);
    else socket.listen(0, "127.0.0.1", bound);
  });
}

// A download without end, 6 Mb/s.
const download = http.createServer((_, answer) => {
  const timer = setInterval(() => answer.write(Buffer.alloc(37_500)), 50);
  answer.on("close", () => clearInterval(timer));
});

async function main() {
  mkdirSync(pictures, { recursive: true });
  mkdirSync(join(home, "run"), { mode: 0o700 });
  await new Promise((done) => download.listen(0, "127.0.0.1", done));
  const [studio, camera, listen, forward] = [await port("udp"), await port("udp"), await port("udp"), await port("tcp")];
  run("server", ["identity", "new"], { out: true });
  const key = run("client", ["identity", "new"], { out: true }).match(/marline-pub:\S+/)[0];
  const target = download.address().port;
  const server = run("server", ["server", "--listen", `127.0.0.1:${listen}`, "--allow-client", key, "--allow-target", `127.0.0.1:${target}`,
    "--live", `udp://127.0.0.1:${studio},name=cam`, "--web", "127.0.0.1:0", "--control", join(home, "server.sock")]);
  const [connection] = await logged(server, /marline:\/\/\S+/);
  // No terminal is there: the log has the token's file and not the token.
  const pageOf = async (child) => {
    const [, address, file] = await logged(child, /page at (http:\/\/127\S+\/TOKEN\/), with what is in (\S+) as TOKEN/);
    const secret = readFileSync(file, "utf8").trim();
    assert.match(secret, /^[0-9a-f]{32}$/);
    assert.ok(!child.text.includes(secret), "the token is in the log");
    return address.replace("TOKEN", secret);
  };
  const serverPage = await pageOf(server);
  const links = await Promise.all([["fibre", "20mbit", "12ms", "0.2%"], ["lte", "12mbit", "38ms", "1%"]].map(async ([name, rate, delay, loss]) => {
    const at = await port("udp");
    const child = run(`link.${name}`, ["link", "--listen", `127.0.0.1:${at}`, "--to", `127.0.0.1:${listen}`, "--rate", rate, "--delay", delay, "--jitter", "2ms", "--loss", loss]);
    return { name, at, child };
  }));
  await sleep(0.5);
  const path = ({ name, at }, more = "") => `127.0.0.1,name=${name},server=127.0.0.1:${at}${more}`;
  const options = ["client", "--server", connection, "--path", path(links[0]), "--path", path(links[1], ",cost=1,budget=20GB"), "--socks", "off",
    "--forward", `tcp:127.0.0.1:${forward}=127.0.0.1:${target}`, "--live", `udp://127.0.0.1:${camera},name=cam,latency=150ms,target=4mbps`,
    "--web", "127.0.0.1:0", "--control", join(home, "client.sock")];
  let client = run("client", options);
  let url = await pageOf(client);
  const token = url.split("/")[3];
  const status = () => JSON.parse(run("client", ["status", "--json", "--control", join(home, "client.sock")], { out: true }));
  const pathOf = (name) => status().sessions[0]?.paths.find((one) => one.name === name);
  await until("both links are in use", () => status().sessions[0].paths.every((one) => one.state === "active"));

  // Traffic.
  const fetch_ = () => http.get({ port: forward, host: "127.0.0.1" }, (answer) => answer.resume()).on("error", () => {});
  fetch_();
  const socket = dgram.createSocket("udp4");
  const sent = setInterval(() => { for (let i = 0; i < 4; i++) socket.send(Buffer.alloc(1250, 0x33), camera, "127.0.0.1"); }, 10);
  children.push({ kill: () => { clearInterval(sent); socket.close(); } });

  // Who is refused.
  const ask = (path, headers = {}, method = "GET", body = "") => new Promise((done, failed) => {
    const { port } = new URL(url);
    const request = http.request({ host: "127.0.0.1", port, path, method, headers }, (answer) => {
      let text = "";
      answer.on("data", (data) => (text += data)).on("end", () => done({ code: answer.statusCode, headers: answer.headers, text }));
    }).on("error", failed);
    request.end(body);
  });
  const action = JSON.stringify({ version: 1, request: "paths-standby", path: "lte", standby: true });
  const json = { "content-type": "application/json" };
  for (const path of ["/", "/page.js", "/api/v1/now", `/${"0".repeat(32)}/`, `/${token.slice(0, 31)}/`, `/x${token}/`])
    assert.equal((await ask(path)).code, 403, path);
  assert.equal((await ask("/api/v1/do", json, "POST", action)).code, 403);
  assert.equal((await ask(`/${token}/`, { host: "evil.example" })).code, 421);
  assert.equal((await ask(`/${token}/api/v1/do`, { ...json, origin: "http://evil.example" }, "POST", action)).code, 403);
  assert.equal((await ask(`/${token}/api/v1/do`, {}, "POST", action)).code, 415);
  assert.equal((await ask(`/${token}/api/v1/do`, json, "POST", "x".repeat(5000))).code, 413);
  assert.equal((await ask(`/${token}/api/v1/do`, json, "POST", '{"version":1,"request":"stop"}')).code, 400);
  assert.equal(pathOf("lte").state, "active", "nothing of that acted");
  const answer = await ask(`/${token}/`);
  assert.equal(answer.code, 200);
  assert.match(answer.headers["content-security-policy"], /^default-src 'self'/);

  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
  children.push({ kill: () => browser.close() });
  const open = async (address, width, height, colorScheme, scale = 1) => {
    const context = await browser.newContext({ viewport: { width, height }, colorScheme, deviceScaleFactor: scale, hasTouch: width < 500 });
    const page = await context.newPage();
    page.on("request", (request) => request.url().startsWith(address) || wrong.push(`a request leaves the page: ${request.url()}`));
    page.on("pageerror", (error) => wrong.push(error.stack));
    page.on("console", (message) => message.type() === "error" && wrong.push(`${message.text()} ${message.location().url}`));
    await page.goto(address);
    await page.waitForSelector(".link");
    return page;
  };
  // The demo's page: its links and its live stream, and one of them dark.
  const demo = run("demo", ["demo", "--web=127.0.0.1:0", "--seconds", "10", "--schedulers", "auto"]);
  const [, demoPage] = await logged(demo, /page at (http:\/\/127\S+\/[0-9a-f]{32}\/)/);
  await logged(demo, /2\/3 link B alone +\d/, 60);
  const shownDemo = await open(demoPage, 1280, 1000, "light");
  await shownDemo.waitForFunction(() => document.querySelectorAll('.link[data-state="active"]').length === 2);
  assert.deepEqual(await shownDemo.$$eval(".link", (cards) => cards.map((card) => card.dataset.path)), ["A", "B"]);
  assert.equal(await shownDemo.locator(".entry").count(), 1);
  await shownDemo.waitForSelector('#events li[data-kind="dead"], #events li[data-kind="suspect"]', { timeout: 30_000 });
  await shownDemo.screenshot({ path: join(pictures, "demo-desktop-light.png"), fullPage: true });
  await logged(demo, /The page stays until Ctrl-C/, 60);
  assert.match(demo.text, /bonded, auto/);
  assert.equal((await fetch(demoPage)).status, 200);
  await shownDemo.context().close();
  demo.kill("SIGINT");
  await until("the demo's end", () => demo.ended);

  const page = await open(url, 1280, 1000, "light");
  const others = { "desktop-dark": await open(url, 1280, 1000, "dark"), "phone-light": await open(url, 390, 844, "light", 2), "phone-dark": await open(url, 390, 844, "dark", 2) };
  const picture = async (what) => {
    await page.screenshot({ path: join(pictures, `${what}-desktop-light.png`), fullPage: true });
    for (const [name, other] of Object.entries(others)) {
      await other.bringToFront();
      await sleep(1.2);
      await other.screenshot({ path: join(pictures, `${what}-${name}.png`), fullPage: what !== "dead" && name === "phone-light" });
    }
    await page.bringToFront();
  };

  // What the page shows is what `status --json` says.
  const shown = () => page.$$eval(".link", (cards) => cards.map((card) => ({ name: card.dataset.path, state: card.dataset.state,
    terms: card.querySelector(".terms").textContent, rtt: card.querySelector("[data-figure=rtt]").textContent })));
  await sleep(3);
  const compare = async () => {
    const [before, cards, after] = [status(), await shown(), status()];
    assert.deepEqual(cards.map((card) => card.name), before.sessions[0].paths.map((one) => one.name));
    cards.forEach((card, index) => {
      const [one, two] = [before.sessions[0].paths[index], after.sessions[0].paths[index]];
      assert.equal(card.state, one.state);
      assert.ok(card.terms.includes(`cost ${one.cost}`), card.terms);
      assert.ok(card.terms.includes(`datagrams of ${one.datagram_bytes.toLocaleString("en")}`), card.terms);
      const figure = Number.parseFloat(card.rtt);
      const [low, high] = [Math.min(one.rtt_ms, two.rtt_ms), Math.max(one.rtt_ms, two.rtt_ms)];
      assert.ok(figure > low * 0.7 && figure < high * 1.3, `${card.name}: ${figure} ms, ${low} to ${high}`);
    });
    const now = JSON.parse((await ask(`/${token}/api/v1/now`)).text).status;
    const steady = ({ name, state, cost, datagram_bytes, carrier, reason }) => ({ name, state, cost, datagram_bytes, carrier, reason });
    assert.deepEqual(now.sessions[0].paths.map(steady), status().sessions[0].paths.map(steady));
    assert.deepEqual(Object.keys(now).sort(), Object.keys(before).sort());
    assert.deepEqual([now.clients, now.published], [[], []]);
    assert.deepEqual(Object.keys(now.sessions[0].paths[0]).sort(), Object.keys(before.sessions[0].paths[0]).sort());
  };
  // A look is up to a second old, and links may change their state or size meanwhile.
  for (let tries = 10; ; tries--) {
    try {
      await compare();
      break;
    } catch (error) {
      if (tries === 0) throw error;
      await sleep(1);
    }
  }
  await sleep(SECONDS);
  await picture("fine");

  // A link dies: it is on the page with its reason, and comes back with what it cost.
  const victim = links[0];
  victim.child.kill("SIGSTOP");
  await page.waitForSelector(`.link[data-path=${victim.name}][data-state=dead]`, { timeout: 20_000 });
  const event = await page.waitForSelector('#events li[data-kind="dead"]');
  const text = await event.textContent();
  assert.ok(text.includes(victim.name) && text.includes(" is dead: "), text);
  const reason = text.split(" is dead: ")[1];
  assert.ok(reason.length > 5, reason);
  await page.waitForFunction((name) => document.querySelector("#why h1").textContent.includes(name), victim.name);
  assert.equal(await page.getAttribute("#why", "data-level"), "slow");
  await sleep(4);
  assert.equal(pathOf(victim.name).state, "dead");
  await picture("dead");
  // The one of README.md, docs/pictures/page.png.
  const small = await open(url, 1000, 600, "light");
  await sleep(1.5);
  await small.screenshot({ path: join(pictures, "readme.png") });
  await small.context().close();
  victim.child.kill("SIGCONT");
  await page.waitForSelector(`.link[data-path=${victim.name}][data-state=active]`, { timeout: 30_000 });
  await page.waitForFunction((name) => document.querySelector(`.link[data-path=${name}] .trouble`).textContent.includes("is back") ||
    document.querySelector(`.link[data-path=${name}] .trouble`).textContent.includes("back after"), victim.name);

  // The buttons act.
  const card = (name) => page.locator(`.link[data-path=${name}]`);
  await card("lte").getByRole("button", { name: "Stand by" }).click();
  await until("lte stands by", () => pathOf("lte").state === "standby");
  await page.waitForSelector(".link[data-path=lte][data-state=standby]");
  await card("lte").getByRole("button", { name: "Use it" }).click();
  await until("lte is back", () => pathOf("lte").state === "active");
  await page.fill("#add-path", path({ ...links[1], name: "third" }, ",standby"));
  await page.getByRole("button", { name: "Add link" }).click();
  await page.waitForSelector(".link[data-path=third]");
  assert.equal(pathOf("third").name, "third");
  await card("third").getByRole("button", { name: "Remove" }).click();
  assert.equal(pathOf("third").name, "third", "one press is no removal");
  await card("third").getByRole("button", { name: "Really remove?" }).click();
  await until("third is gone", () => pathOf("third") === undefined);
  await page.waitForSelector(".link[data-path=third]", { state: "detached" });
  await page.fill('.entry[data-live=cam] input', "3mbps");
  await page.getByRole("button", { name: "Set target" }).click();
  await until("the target", () => status().live[0].target_bps === 3_000_000);
  await page.fill("#add-path", "fibre,stanby");
  await page.getByRole("button", { name: "Add link" }).click();
  await page.waitForSelector('#said[data-level="slow"]');
  await page.fill("#add-path", "");

  // The phone: nothing wider than the screen, and everything that matters on the first one.
  const phone = others["phone-light"];
  assert.ok(await phone.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "the phone's page scrolls sideways");
  const low = await phone.$$eval(".link .trouble", (all) => Math.max(...all.map((one) => one.getBoundingClientRect().bottom + scrollY)));
  assert.ok(low <= 844, `links end at ${low}`);
  await picture("back");
  await page.getByRole("button", { name: "24 h" }).click();
  await page.getByText("Waiting, datagram size").click();
  await sleep(1.5);
  await page.screenshot({ path: join(pictures, "day-desktop-light.png"), fullPage: true });

  // The server's page: the same, without buttons for links.
  const remote = await open(serverPage, 1280, 1000, "light");
  assert.equal(await remote.getByRole("button", { name: "Stand by" }).count(), 0);
  await remote.screenshot({ path: join(pictures, "server-desktop-light.png"), fullPage: true });
  await remote.close();

  // The one mistake above is answered as such.
  assert.deepEqual(wrong.filter((one) => !(one.includes("400") && one.endsWith("api/v1/do"))), []);

  // The program ends, and starts again with the same token.
  client.kill("SIGTERM");
  await page.waitForFunction(() => document.querySelector("#why h1").textContent.includes("does not answer"));
  await until("the end", () => client.ended);
  client = run("client", options);
  url = await pageOf(client);
  assert.equal(url.split("/")[3], token);
  assert.equal((await ask(`/${token}/`)).code, 200);

  // For other hosts: TLS, and a login.
  client.kill("SIGTERM");
  await until("the end", () => client.ended);
  const file = join(home, "password");
  client = run("client", [...options.map((word) => (word === "127.0.0.1:0" ? "0.0.0.0:0" : word)), "--web-login", file]);
  const [, at] = await logged(client, /page at https:\/\/0\.0\.0\.0:(\d+)\/, with the password in \S+\/password/);
  await logged(client, /SHA-256 fingerprint is ([0-9A-F]{2}:){31}/);
  const context = await browser.newContext({ viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, hasTouch: true, ignoreHTTPSErrors: true });
  const guest = await context.newPage();
  await guest.goto(`https://localhost:${at}/`);
  await guest.screenshot({ path: join(pictures, "login-phone-light.png") });
  const enter = async (password) => {
    await guest.fill("#password", password);
    await guest.getByRole("button", { name: "Log in" }).click();
  };
  await enter("nobody's password");
  await guest.getByText("That is not the password.").waitFor();
  await sleep(1.1);
  await enter(readFileSync(file, "utf8").trim());
  await guest.waitForSelector(".link[data-path=fibre][data-state=active]");
  await guest.getByRole("button", { name: "Log out" }).click();
  await guest.waitForSelector("#password");
  await guest.goto(`https://localhost:${at}/${token}/`);
  await guest.waitForSelector("#password");
  console.log(`the page holds; pictures in ${pictures}`);
}

let failed = null;
try {
  await main();
} catch (error) {
  failed = error;
}
for (const child of children.reverse()) {
  try { child.kill("SIGCONT"); await child.kill("SIGKILL"); } catch { /* it has ended */ }
}
download.closeAllConnections();
download.close();
rmSync(home, { recursive: true, force: true });
if (failed) { console.error(failed, wrong); process.exit(1); }
process.exit(0);
