// Drives the gateway's page in Chromium, as its owner would. `crates/cli/tests/gateway/web_ui.rs` starts it:
//
//   PLAYWRIGHT=… AXE=… GATEWAY=http://127.0.0.1:PORT TOKEN=… STRANGER=PORT node web-ui.mjs SCENARIO
//
// What the model answers is in web_ui.rs. With MYCLAW_SCREENSHOTS, a directory, it keeps pictures.

import assert from "node:assert/strict";
import { createDecipheriv, createECDH, createPublicKey, hkdfSync, randomBytes, verify } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const { PLAYWRIGHT, AXE, GATEWAY, TOKEN, STRANGER, MYCLAW_SCREENSHOTS } = process.env;
const { chromium } = await import(pathToFileURL(join(PLAYWRIGHT, "index.mjs")).href);
const axe = readFileSync(join(AXE, "axe.min.js"), "utf8");
const PATIENCE = 60_000;
/** Most bytes that come before the first message can be read, compressed. */
const MOST_BEFORE_MESSAGE = 130_000;

const executablePath = ["/usr/bin/chromium", "/usr/bin/google-chrome", "/usr/bin/chromium-browser"].find(existsSync);
assert(executablePath, "there is no Chromium; scripts/install-third-party installs one");
const browser = await chromium.launch({
  executablePath,
  args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-background-networking", "--use-fake-device-for-media-stream"],
  // Notifications are the browser's own: no desktop is asked to show them.
  env: { ...process.env, DBUS_SESSION_BUS_ADDRESS: "disabled:" },
});
const problems = [];

/** A page of its own, with all that its console and its network say. */
async function open(options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, acceptDownloads: true, ...options });
  context.setDefaultTimeout(PATIENCE);
  const page = await context.newPage();
  page.foreign = [];
  page.console_ = [];
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && page.console_.push(message.text()));
  page.on("pageerror", (error) => problems.push(`an error on the page: ${error.message}`));
  page.on("request", (request) => {
    const url = new URL(request.url());
    if (["http:", "https:", "ws:", "wss:"].includes(url.protocol) && url.host !== new URL(GATEWAY).host) page.foreign.push(request.url());
  });
  page.on("websocket", (socket) => {
    if (new URL(socket.url()).host !== new URL(GATEWAY).host) page.foreign.push(socket.url());
  });
  return page;
}

async function signIn(page, token = TOKEN, at = "/") {
  await page.goto(GATEWAY + at);
  await page.getByLabel("Token").fill(token);
  await page.getByRole("button", { name: "Sign in" }).click();
}

async function ready(page) {
  await page.getByRole("textbox", { name: "Message" }).waitFor();
}

/** Follows a link within the page. The page before stays for a moment, and what is written there is not for this session. */
async function enter(page, session) {
  await page.goto(`${GATEWAY}/#/s/${session}`);
  await page.locator(`h1[title="${session}"]`).waitFor();
  await ready(page);
}

async function say(page, text) {
  await page.getByRole("textbox", { name: "Message" }).fill(text);
  await page.keyboard.press("Enter");
}

const messages = (page) => page.getByRole("log", { name: "Messages" });

/** The text of the messages, without times, as one string. */
async function transcript(page) {
  return (await messages(page).locator(".message").allInnerTexts()).join("\n---\n").replace(/\d+(\.\d+)? (ms|s)\b/g, "TIME");
}

async function same(page, expected) {
  const until = Date.now() + PATIENCE;
  while ((await transcript(page)) !== expected && Date.now() < until) await page.waitForTimeout(100);
  assert.equal(await transcript(page), expected);
}

/** Waits until a field has this value: it is set after what is said about it is drawn. */
async function holds(field, value) {
  await eventually(`a field holds ${value}`, async () => (await field.inputValue()) === value);
}

async function idle(page) {
  await page.getByRole("button", { name: "Stop" }).waitFor({ state: "detached" });
}

/** Waits for so many answers. A message that was sent a moment ago does not make the page busy at once, so an idle page is no sign. */
async function answered(page, count) {
  await eventually(`${count} answers`, async () => (await messages(page).getByText("Good morning.").count()) === count);
  await idle(page);
}

/** Waits until what changed is drawn and no transition runs. */
async function settled(page) {
  await page.evaluate(async () => {
    const frame = () => new Promise((done) => requestAnimationFrame(done));
    for (let frames = 0; frames < 3; frames++) await frame();
    const ends = (one) => Number.isFinite(one.effect.getComputedTiming().endTime);
    await Promise.allSettled(document.getAnimations().filter(ends).map((one) => one.finished));
  });
}

async function shot(page, name) {
  if (!MYCLAW_SCREENSHOTS) return;
  mkdirSync(MYCLAW_SCREENSHOTS, { recursive: true });
  await page.screenshot({ path: join(MYCLAW_SCREENSHOTS, `${name}.png`) });
}

/** In light and dark, on a phone and on a desk: nothing that axe calls serious, and nothing wider than the screen. */
async function check(page, name) {
  for (const colorScheme of ["light", "dark"]) {
    for (const width of [1280, 360]) {
      await page.emulateMedia({ colorScheme });
      await page.setViewportSize({ width, height: width === 360 ? 740 : 800 });
      await settled(page);
      await shot(page, `${name}-${colorScheme}-${width}`);
      const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      assert(overflow <= 0, `${name}: ${overflow} pixels wider than ${width}`);
      // The policy forbids scripts in the page, so axe comes through the debugger.
      if (!(await page.evaluate(() => "axe" in globalThis))) await page.evaluate(axe);
      const found = await page.evaluate(async () => (await globalThis.axe.run()).violations);
      const bad = found.filter((one) => ["serious", "critical"].includes(one.impact));
      const lines = bad.map((one) => `${one.id}: ${one.help}: ${one.nodes.map((node) => `${node.target} ${node.failureSummary}`).join("; ")}`);
      assert.deepEqual(lines, [], `${name}, ${colorScheme}, ${width}`);
    }
  }
  await page.emulateMedia({ colorScheme: "light" });
  await page.setViewportSize({ width: 1280, height: 800 });
}

async function eventually(what, is) {
  const until = Date.now() + PATIENCE;
  while (!(await is())) {
    assert(Date.now() < until, `not in time: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** The text of the QR code in a picture, read by a program of others. */
async function readCode(png) {
  const jsQR = createRequire(join(AXE, "package.json"))("jsqr");
  const page = await browser.newPage();
  const { data, width, height } = await page.evaluate(async (source) => {
    const image = new Image();
    image.src = source;
    await image.decode();
    const canvas = new OffscreenCanvas(image.width, image.height).getContext("2d");
    canvas.drawImage(image, 0, 0);
    return { data: [...canvas.getImageData(0, 0, image.width, image.height).data], width: image.width, height: image.height };
  }, `data:image/png;base64,${png.toString("base64")}`);
  await page.close();
  return jsQR.default(Uint8ClampedArray.from(data), width, height)?.data;
}

/** Has the newest job of the agent become due now. */
async function makeDue() {
  const headers = { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" };
  const { jobs } = await (await fetch(`${GATEWAY}/api/cron`, { headers })).json();
  const job = jobs.filter((one) => one.work.kind === "message").sort((one, other) => other.createdAt - one.createdAt)[0];
  const asked = await fetch(`${GATEWAY}/api/cron`, { method: "POST", headers, body: JSON.stringify({ action: "run", id: job.id }) });
  assert.equal(asked.status, 200);
}

const scenarios = {
  async chat() {
    const page = await open();
    await page.goto(GATEWAY);
    await check(page, "login");
    await signIn(page, "wrong-token-wrong-token");
    await page.getByRole("alert").filter({ hasText: "the token is wrong" }).waitFor();
    await signIn(page);
    await ready(page);
    assert.equal(page.url().includes(TOKEN), false, "the token is in the address");

    await say(page, "hello");
    await messages(page).getByText("Good morning.").waitFor();
    await idle(page);

    // The beginning of an answer is seen before its end is there.
    await say(page, "please stream");
    await messages(page).getByRole("heading", { name: "A heading" }).waitFor();
    assert.equal(await messages(page).getByText("And the last word.").count(), 0, "the whole answer came at once");
    // One that joins now sees the same.
    const other = await page.context().newPage();
    await other.goto(GATEWAY);
    await other.getByLabel("Token").fill(TOKEN);
    await other.getByRole("button", { name: "Sign in" }).click();
    await other.getByRole("heading", { name: "A heading" }).waitFor();
    console.log("the beginning is seen");
    await messages(page).getByText("And the last word.").waitFor();
    await messages(other).getByText("And the last word.").waitFor();
    await idle(page);
    await idle(other);
    assert.equal(await messages(page).getByRole("table").count(), 1);
    assert.equal(await messages(page).locator("pre code").innerText(), "fn main() {}\n");

    await say(page, "please run");
    const tool = messages(page).locator("details.tool");
    await tool.getByText("echo from-the-tool").first().waitFor();
    await messages(page).getByText("The tool is done.").waitFor();
    await idle(page);
    assert.equal(await tool.getAttribute("open"), null, "tool calls are folded");
    await tool.locator("summary").click();
    await tool.getByRole("group", { name: "result" }).getByText("from-the-tool").waitFor();
    assert.match(await tool.locator("summary").innerText(), /\d (ms|s)/);
    await check(page, "chat");
    await tool.locator("summary").click();

    // A picture goes in.
    const png = "iVBORw0KGgoAAAANSUhEUgAAAAoAAAAKCAIAAAACUFjqAAAAEklEQVR4nGP4z8CAB+GTG8HSALfKY52fTcuYAAAAAElFTkSuQmCC";
    await page.locator("input[type=file]").setInputFiles({ name: "a.png", mimeType: "image/png", buffer: Buffer.from(png, "base64") });
    await page.getByRole("img", { name: "picture 1" }).waitFor();
    await say(page, "what is this?");
    await messages(page).getByText("I see a picture.").waitFor();
    await idle(page);
    await eventually("the picture is shown", async () => (await messages(page).locator("img.picture").count()) === 1);

    // Other files too: picked, dropped and pasted. What is too large is named, and the rest stays.
    const csv = (name, text) => ({ name, mimeType: "text/csv", buffer: Buffer.from(text) });
    await page.locator("input[type=file]").setInputFiles([csv("picked.csv", "a,b"), csv("large.csv", "x".repeat(5_000_000))]);
    await page.getByRole("alert").getByText("Not attached: large.csv.").waitFor();
    for (const [kind, name] of [["drop", "dropped.pdf"], ["paste", "pasted.txt"]]) {
      await page.evaluate(
        ([kind, name]) => {
          const data = new DataTransfer();
          data.items.add(new File(["text"], name, { type: "application/octet-stream" }));
          const options = { bubbles: true, cancelable: true };
          const event =
            kind === "drop"
              ? new DragEvent("drop", { ...options, dataTransfer: data })
              : new ClipboardEvent("paste", { ...options, clipboardData: data });
          document.querySelector("form.composer textarea").dispatchEvent(event);
        },
        [kind, name],
      );
      await page.getByRole("button", { name: `Remove ${name}` }).waitFor();
    }
    await page.getByRole("button", { name: "Remove dropped.pdf" }).click();
    await say(page, "read them");
    await messages(page).getByText("I have 2 files.").waitFor();
    await idle(page);

    await say(page, "please fail");
    await messages(page).getByText("no such luck").first().waitFor();
    await idle(page);

    // Reloading, coming later and staying connected give the same. What fails has no message of its own.
    await eventually("no message is empty", async () => (await messages(page).locator(".message").allInnerTexts()).every((text) => text.trim()));
    const stayed = await transcript(page);
    await page.reload();
    await messages(page).getByText("no such luck").first().waitFor();
    await same(page, stayed);
    await same(other, stayed);
    assert.deepEqual(page.foreign, []);

    // Everything by the keyboard.
    await page.keyboard.press("Tab");
    await page.getByRole("textbox", { name: "Message" }).focus();
    await page.keyboard.type("hello again");
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await eventually("sent with the keyboard", async () => (await messages(page).getByText("Good morning.").count()) === 2);

    // Signed out, nothing is left in the browser.
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByLabel("Token").waitFor();
    assert.equal(await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }])).then((kept) => kept.includes("myclaw.token")), false);
  },

  /** All that is loaded until the first answer is seen is small; the other parts come when they are used. */
  async budget() {
    const page = await open();
    const sizes = new Map();
    page.on("requestfinished", async (request) => {
      if (request.url().startsWith("http")) sizes.set(new URL(request.url()).pathname, (await request.sizes()).responseBodySize);
    });
    await signIn(page);
    await ready(page);
    await say(page, "hello");
    await messages(page).getByText("Good morning.").waitFor();
    await idle(page);
    await eventually("the sizes are known", () => sizes.has("/app.js") && sizes.has("/app.css"));
    // An icon counts too, which a browser loads to install the page.
    for (const icon of ["/icon-192.png", "/icon-512.png"]) sizes.set(icon, (await (await fetch(GATEWAY + icon)).arrayBuffer()).byteLength);
    const sum = [...sizes.values()].reduce((all, one) => all + one, 0);
    assert(sum > 40_000 && sum < MOST_BEFORE_MESSAGE, `${sum} bytes: ${JSON.stringify([...sizes])}`);
    const scripts = () => [...sizes.keys()].filter((path) => path.endsWith(".js"));
    assert.deepEqual(scripts(), ["/app.js"]);

    // What cannot be loaded says so, and loading the page again helps.
    await page.route("**/usage.js", (route) => route.abort(), { times: 1 });
    await page.goto(`${GATEWAY}/#/usage`);
    await page.getByRole("alert").getByText("This part of the page could not be loaded.").waitFor();
    await check(page, "part-missing");
    await page.getByRole("button", { name: "Load the page again" }).click();
    await page.getByRole("radio", { name: "24 hours" }).waitFor();
    await eventually("the part is loaded", () => sizes.has("/usage.js"));
    assert(!sizes.has("/config.js"), "the config page is not shown");
    assert.deepEqual(page.foreign, []);
  },

  /** A link signs in once, in one browser; what it gives ends with "Sign out". */
  async link() {
    const post = (path, body, token) =>
      fetch(GATEWAY + path, {
        method: "POST",
        headers: { "Content-Type": "application/json", ...(token ? { Authorization: `Bearer ${token}` } : {}) },
        body: JSON.stringify(body),
      }).then((answer) => answer.json());
    const link = (await post("/api/devices/link", {}, TOKEN)).links[0];
    assert(link.startsWith(`${GATEWAY}/#/sign-in/`), link);
    const secret = link.split("/").at(-1);
    const page = await open();
    const asked = [];
    page.on("request", (request) => asked.push(request.url()));
    await page.goto(link);
    await ready(page);
    assert.equal(page.url().includes(secret), false, "the secret is in the address");
    assert(asked.every((url) => !url.includes(secret)), "the secret is in a request's address");
    await say(page, "hello");
    await messages(page).getByText("Good morning.").waitFor();
    await idle(page);
    // It is a device, which stays signed in.
    await page.goto(`${GATEWAY}/#/devices`);
    await page.getByRole("listitem").getByText("approved").waitFor();
    await page.reload();
    await page.getByRole("listitem").getByText("approved").waitFor();
    // The same link is of no use to another browser, nor later.
    const other = await open();
    await other.goto(link);
    await other.getByRole("alert").getByText("the link was used or is too old").waitFor();
    await check(other, "link-used");
    // Where the page is open already, a link works as well.
    const next = (await post("/api/devices/link", {}, TOKEN)).links[0];
    await other.goto(next);
    await ready(other);
    const token = await other.evaluate(() => localStorage.getItem("myclaw.token"));
    await other.getByRole("button", { name: "Sign out" }).click();
    await other.getByLabel("Token").waitFor();
    const holds = async () => (await fetch(`${GATEWAY}/api/status`, { headers: { Authorization: `Bearer ${token}` } })).status;
    await eventually("the access has ended", async () => (await holds()) === 401);
    assert.deepEqual([...page.foreign, ...other.foreign], []);
  },

  /** The events of a whole turn come one by one after its end, so all that the page reads of the log is ahead of them. */
  async late() {
    const page = await open();
    const [held, asked] = [[], new Set()];
    let [isHeld, deliver, before] = [false, () => {}, undefined];
    await page.routeWebSocket(/\/ws$/, (socket) => {
      const server = socket.connectToServer();
      deliver = (message) => socket.send(message);
      socket.onMessage((message) => {
        const { method, id } = JSON.parse(message);
        if (method === "history") asked.add(id);
        server.send(message);
      });
      server.onMessage((message) => {
        const { type, id } = JSON.parse(message);
        if (isHeld && type === "event") held.push(message);
        else if (before === undefined || !asked.has(id)) deliver(message);
        else deliver(JSON.stringify({ ...JSON.parse(message), result: { ...JSON.parse(message).result, sequence: before } }));
        if (type === "response") asked.delete(id);
      });
    });
    await signIn(page);
    await ready(page);
    isHeld = true;
    await say(page, "please run twice");
    await eventually("the end of the turn", () => held.some((message) => JSON.parse(message).event.type === "run_end"));
    const shown = [
      messages(page).locator("details.tool").filter({ hasText: "echo the-first" }),
      messages(page).locator("details.tool").filter({ hasText: "echo the-second" }),
      messages(page).getByText("The tool is done."),
    ];
    const drawn = () => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
    for (let at = 0; at < held.length; at++) {
      deliver(held[at]);
      await drawn();
      await eventually("the log was read", () => asked.size === 0);
      await drawn();
      for (const one of shown) assert((await one.count()) <= 1, `${one} is shown twice after ${held[at]}`);
    }
    for (const one of shown) assert.equal(await one.count(), 1);
    // The log is read late, and its answer names the event of before.
    [isHeld, held.length] = [true, 0];
    await enter(page, "late");
    await say(page, "hello");
    const event = (message) => JSON.parse(message).event.type;
    await eventually("the end of the turn", () => held.some((message) => event(message) === "run_end"));
    const answer = messages(page).getByText("Good morning.");
    for (const message of held) {
      if (event(message) === "taken") before = JSON.parse(message).sequence;
      deliver(message);
      await drawn();
      await eventually("the log was read", () => asked.size === 0);
      before = undefined;
      await drawn();
      assert((await answer.count()) <= 1, `the answer is shown twice after ${message}`);
    }
    assert.equal(await answer.count(), 1);
  },

  async steer() {
    const page = await open();
    await signIn(page);
    await ready(page);
    await say(page, "please take long");
    await messages(page).getByText("word word").waitFor();
    await say(page, "one more thing");
    const waiting = messages(page).locator(".message.user", { hasText: "one more thing" });
    await waiting.getByText("waiting").waitFor();
    await shot(page, "waiting");
    // A reload in the middle shows the partial answer and what waits.
    await page.reload();
    await messages(page).getByText("word word").waitFor();
    await waiting.getByText("waiting").waitFor();
    await page.getByRole("button", { name: "Stop" }).click();
    await messages(page).getByText("Good morning.").or(messages(page).getByText("aborted").first()).first().waitFor();
    await idle(page);
    await eventually("nothing waits", async () => (await messages(page).getByText("waiting", { exact: true }).count()) === 0);
    const stayed = await transcript(page);
    await page.reload();
    await messages(page).getByText("please take long").waitFor();
    await same(page, stayed);
  },

  /** What is a command in other chats is one here, and no message to the model. */
  async commands() {
    const page = await open();
    await signIn(page);
    await ready(page);
    await say(page, "/help");
    await messages(page).getByText("/new begins a new session").waitFor();
    await say(page, "/status");
    await messages(page).getByText(", which waits, in the mode auto.").waitFor();
    await say(page, "/stop");
    await messages(page).getByText("Nothing runs.").waitFor();

    // A stopped answer stands below its question, and says once that it was stopped.
    await say(page, "please take long");
    await messages(page).getByText("word word").waitFor();
    await say(page, "/status");
    await messages(page).getByText(", which works, in the mode auto.").waitFor();
    await say(page, "/stop");
    await messages(page).getByText("Stopped.").waitFor();
    await idle(page);
    await say(page, "hello");
    await messages(page).getByText("Good morning.").waitFor();
    await idle(page);
    const said = await transcript(page);
    const places = ["please take long", "word word", "stopped", "hello", "Good morning."].map((text) => said.indexOf(text));
    assert(!places.includes(-1) && places.every((at, number) => number === 0 || at > places[number - 1]), `${places}: ${said}`);
    assert.equal(await messages(page).getByText("stopped", { exact: false }).count(), 1, said);

    // Each error once, below what failed.
    for (const count of [1, 2]) {
      await say(page, "please fail");
      await eventually("the error", async () => (await messages(page).getByText("no such luck").count()) === count);
      await idle(page);
    }
    const all = await messages(page).innerText();
    assert.equal(all.split("please fail").length, 3, all);
    assert(all.indexOf("please fail") < all.indexOf("no such luck"), all);
    assert(all.lastIndexOf("please fail") < all.lastIndexOf("no such luck"), all);
    await page.reload();
    await eventually("the errors again", async () => (await messages(page).getByText("no such luck").count()) === 2);

    await say(page, "/new");
    await messages(page).getByText("Nothing was said in this session yet.", { exact: false }).waitFor();
    await say(page, "hello");
    await messages(page).getByText("Good morning.").waitFor();
    await idle(page);
    assert.equal(await messages(page).locator(".message.user").count(), 1);
  },

  async restart() {
    const page = await open();
    await signIn(page);
    await ready(page);
    await say(page, "hello");
    await messages(page).getByText("Good morning.").waitFor();
    await idle(page);
    console.log("stop the gateway");
    await page.getByText("The gateway cannot be reached.").waitFor();
    await say(page, "still there?");
    await messages(page).getByText("sending…").waitFor();
    await shot(page, "offline");
    console.log("start the gateway");
    await eventually("answered", async () => (await messages(page).getByText("Good morning.").count()) === 2);
    await idle(page);
    assert.equal(await messages(page).locator(".message.user").count(), 2);
    assert.equal(await messages(page).getByText("sending…").count(), 0);
  },

  async approvals() {
    const page = await open();
    await signIn(page, TOKEN, "/#/s/asks");
    await ready(page);
    await say(page, "please write");
    const ask = page.getByRole("region", { name: "approval of write" });
    await ask.getByText("+first line").waitFor();
    // Everything that decides what happens, and the words of each "always".
    await ask.getByRole("group", { name: "path" }).getByText("/notes.md").waitFor();
    await ask.getByRole("group", { name: "confinement" }).getByText("sandboxed").waitFor();
    await ask.getByText("covers write on every file in /").waitFor();
    await ask.getByRole("button", { name: "Always for this path" }).waitFor();
    await ask.getByRole("button", { name: "Always in this directory" }).waitFor();
    await page.locator(".badge", { hasText: "asks" }).waitFor();
    await check(page, "approval");
    // Another client sees the question too, and a reload keeps it.
    await page.reload();
    await ask.getByText("+first line").waitFor();
    await ask.getByRole("textbox", { name: "Why not, for the agent" }).fill("too early");
    await ask.getByRole("button", { name: "No", exact: true }).click();
    await messages(page).getByText("The tool is done.").waitFor();
    await ask.waitFor({ state: "detached" });
    await page.goto(`${GATEWAY}/#/status`);
    await page.getByText("No call waits for an approval.").waitFor();
    await check(page, "status");
    await enter(page, "asks2");
    await say(page, "please write");
    await ask.getByRole("button", { name: "Allow once" }).click();
    await messages(page).getByText("The tool is done.").waitFor();
    await idle(page);
    const tool = messages(page).locator("details.tool");
    await tool.locator("summary").click();
    await tool.getByRole("group", { name: "change" }).getByText("+second line").waitFor();
    await check(page, "diff");
  },

  async "approval-before-restart"() {
    const page = await open();
    await signIn(page, TOKEN, "/#/s/restart");
    await ready(page);
    await say(page, "please write");
    await page.getByRole("region", { name: "approval of write" }).waitFor();
  },

  async "approval-after-restart"() {
    const page = await open();
    await signIn(page, TOKEN, "/#/s/restart");
    await page.getByRole("button", { name: "Allow once" }).click();
    await messages(page).getByText("The tool is done.").waitFor();
  },

  async sessions() {
    const page = await open();
    await signIn(page, TOKEN, "/#/s/garden");
    await ready(page);
    await say(page, "hello tomatoes");
    await messages(page).getByText("Good morning.").waitFor();
    await idle(page);
    const list = page.getByRole("navigation", { name: "Sessions" });
    const menu = async (item) => {
      await page.getByLabel("Session menu").click();
      await page.getByRole("button", { name: item, exact: true }).click();
    };
    // It is called by what was said, until its owner says otherwise.
    await list.getByText("hello tomatoes").waitFor();
    await page.getByRole("heading", { level: 1, name: "hello tomatoes" }).waitFor();
    await menu("Rename");
    await holds(page.getByRole("dialog").getByRole("textbox"), "");
    await page.getByRole("dialog").getByRole("textbox").fill("The garden");
    await check(page, "dialog");
    await page.getByRole("button", { name: "Save" }).click();
    await list.getByText("The garden").waitFor();
    await menu("Fork");
    await page.getByRole("dialog").getByRole("textbox").fill("garden-2");
    await page.getByRole("dialog").getByRole("button", { name: "Fork" }).click();
    await page.waitForURL(/garden-2/);
    await messages(page).getByText("hello tomatoes").waitFor();
    // The fork stands below the session that it comes from.
    const fork = list.locator("li.level-1");
    await fork.getByText("garden-2").waitFor();
    assert((await fork.locator("xpath=preceding-sibling::li[1]").innerText()).includes("The garden"), "the parent is above");
    for (const [item, ending, holds] of [
      ["Export as HTML", ".html", "<html"],
      ["Export as Markdown", ".md", "hello tomatoes"],
      ["Export as JSONL", ".jsonl", '"role":"user"'],
    ]) {
      const [download] = await Promise.all([page.waitForEvent("download"), menu(item)]);
      assert(download.suggestedFilename().endsWith(ending), download.suggestedFilename());
      assert(readFileSync(await download.path(), "utf8").includes(holds), item);
    }
    await page.getByRole("searchbox", { name: "Search sessions" }).fill("TOMATOES");
    await list.locator("mark").first().waitFor();
    await shot(page, "search");
    await page.getByRole("searchbox", { name: "Search sessions" }).fill("");
    await menu("Delete");
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    await page.waitForURL(/#\/s\/main/);
    await eventually("the fork is gone from the list", async () => !(await list.innerText()).includes("garden-2"));
    // On a phone the list is behind a button, and closes with a choice.
    await page.setViewportSize({ width: 360, height: 740 });
    await page.getByRole("button", { name: "Menu", exact: true }).click();
    await settled(page);
    await shot(page, "phone-list");
    await list.getByText("The garden").click();
    await page.waitForURL(/garden/);
    await messages(page).getByText("hello tomatoes").waitFor();
  },

  /** The buttons at messages. What begins anew is a session of its own, and each leads to the others. */
  async branches() {
    const page = await open({ permissions: ["clipboard-read", "clipboard-write"] });
    await signIn(page, TOKEN, "/#/s/garden");
    await ready(page);
    const at = async (name) => {
      await page.locator(`h1[title="${name}"]`).waitFor();
      await idle(page);
    };
    const copied = (text) => eventually(`copied: ${text}`, async () => (await page.evaluate(() => navigator.clipboard.readText())) === text);
    const switches = messages(page).getByRole("group", { name: "Branches" });
    const button = (name) => messages(page).getByRole("button", { name, exact: true });
    await say(page, "hello tomatoes");
    await messages(page).getByText("Good morning.").waitFor();
    await idle(page);
    await messages(page).getByText(/^anthropic\/claude\S* · [\d.K]+ tokens in, [\d.K]+ out · \$0\.\d+$/).waitFor();
    await button("Copy the answer").click();
    await copied("Good morning.");
    await button("Copy your message").click();
    await copied("hello tomatoes");
    await say(page, "please show code");
    // Code has its colours when it is whole; what is in it stays text.
    const code = messages(page).locator("pre code").first();
    await code.locator(".code-word", { hasText: "echo" }).waitFor();
    await code.locator(".code-comment", { hasText: "# <b>" }).waitFor();
    assert.equal(await messages(page).locator("pre code").nth(1).innerHTML(), "if 1\n");
    await button("Copy").first().click();
    await copied("echo from-a-block # <b>\n");
    await idle(page);
    await check(page, "buttons");
    assert.equal(await switches.count(), 0);

    // Other words in place of the second message.
    await button("Edit your message").nth(1).click();
    const area = messages(page).getByRole("textbox", { name: "Your message" });
    await holds(area, "please show code");
    await area.press("Escape");
    await area.waitFor({ state: "detached" });
    await button("Edit your message").nth(1).click();
    await area.fill("hello beans");
    await check(page, "edit");
    await button("Send in a branch").click();
    await at("garden-2");
    await eventually("both answers", async () => (await messages(page).getByText("Good morning.").count()) === 2);
    await switches.getByText("2 of 2").waitFor();
    await idle(page);
    await check(page, "branches");
    await button("Previous branch").click();
    await at("garden");
    await messages(page).getByText("echo from-a-block").waitFor();
    await switches.getByText("1 of 2").waitFor();
    assert(await button("Previous branch").isDisabled());
    await button("Next branch").click();
    await at("garden-2");

    // The first answer once more: nothing comes before its question.
    await button("Ask again").first().click();
    await at("garden-3");
    await messages(page).getByText("Good morning.").waitFor();
    await idle(page);
    await switches.getByText("2 of 2").waitFor();
    assert.equal(await messages(page).locator(".message.user").count(), 1);
    await button("Previous branch").click();
    await at("garden");
    await eventually("two places to switch", async () => (await switches.count()) === 2);
    assert.deepEqual(page.foreign, []);
  },

  /** The model, the thinking level and the mode of a chat; what the agent has planned and changed. */
  async work() {
    const page = await open();
    await signIn(page, TOKEN, "/#/s/work");
    await ready(page);
    await say(page, "hello");
    await messages(page).getByText("Good morning.").waitFor();
    await idle(page);
    const bar = page.getByRole("group", { name: "This chat" });
    const [model, thinking, mode] = ["Model", "Thinking", "Permission mode"].map((name) => bar.getByLabel(name, { exact: true }));
    await model.waitFor();
    const other = await open();
    await signIn(other, TOKEN, "/#/s/work");
    await ready(other);
    const otherModel = other.getByRole("group", { name: "This chat" }).getByLabel("Model", { exact: true });
    await otherModel.waitFor();
    await model.selectOption("anthropic/claude-opus-4-6");
    for (const one of [model, otherModel]) await holds(one, "anthropic/claude-opus-4-6");
    await thinking.selectOption("low");
    await holds(thinking, "low");
    // One that cannot be used changes nothing, and the page says why.
    await model.selectOption("another one…");
    const dialog = page.getByRole("dialog", { name: "Another model" });
    await dialog.getByRole("textbox").fill("nowhere/nothing");
    await dialog.getByRole("button", { name: "Use" }).click();
    await dialog.getByRole("alert").getByText("nowhere").waitFor();
    await dialog.getByRole("button", { name: "Cancel" }).click();
    await holds(model, "anthropic/claude-opus-4-6");
    await mode.selectOption("ask");
    await holds(mode, "ask");
    await mode.selectOption("auto");

    await say(page, "please plan");
    await messages(page).getByText("Plan: 1 of 3 done").waitFor();
    await messages(page).getByText("The tool is done.").waitFor();
    await idle(page);
    await say(page, "/todos");
    await messages(page).getByText("[>] dig").waitFor();

    // A change and the newest result are seen without a click; what is long is folded.
    const ask = page.getByRole("region", { name: "approval of write" });
    await say(page, "please write much");
    await ask.getByRole("button", { name: "Allow once" }).click();
    await eventually("two tools are done", async () => (await messages(page).getByText("The tool is done.").count()) === 2);
    await idle(page);
    const change = messages(page).getByRole("group", { name: "change" });
    await change.getByText("+line 10", { exact: true }).waitFor();
    assert.equal(await change.getByText("+line 60").count(), 0);
    await check(page, "work");
    await messages(page).getByRole("button", { name: /^Show all 6\d lines$/ }).click();
    await change.getByText("+line 60").waitFor();
    await say(page, "please run");
    await eventually("three tools are done", async () => (await messages(page).getByText("The tool is done.").count()) === 3);
    await idle(page);
    await messages(page).getByRole("group", { name: "newest result" }).getByText("from-the-tool").waitFor();
    assert.equal(await messages(page).getByRole("group", { name: "newest result" }).count(), 1);
    await say(page, "/diff");
    const changes = page.getByRole("region", { name: "Changes of this session" });
    await changes.getByRole("heading", { name: "much.md" }).waitFor();
    await changes.getByText("+line 60").waitFor();
    await check(page, "changes");
    await changes.getByRole("button", { name: "Close the changes" }).click();
    await changes.waitFor({ state: "detached" });
    // The plan is there again after a reload, and so are the choices.
    await page.reload();
    await messages(page).getByText("Plan: 1 of 3 done").waitFor();
    await holds(model, "anthropic/claude-opus-4-6");
    assert.deepEqual([...page.foreign, ...other.foreign], []);
  },

  /** Pinned sessions stand first, archived ones in a list of their own; several are deleted at once. */
  async archive() {
    const page = await open();
    await signIn(page, TOKEN, "/#/s/one");
    await ready(page);
    const list = page.getByRole("navigation", { name: "Sessions" });
    const names = async () => (await list.locator(".title").allInnerTexts()).join();
    const lists = (what, expected) => eventually(`${what}: ${expected}`, async () => (await names()) === expected);
    const menu = async (item) => {
      await page.getByLabel("Session menu").click();
      await page.getByRole("button", { name: item, exact: true }).click();
    };
    await lists("the newest first", "hello from four,hello from three,hello from two,hello from one");
    await menu("Pin");
    await lists("the pinned one first", "hello from one,hello from four,hello from three,hello from two");
    await list.locator("li").first().locator(".icon-pin").waitFor();
    await page.getByRole("button", { name: "Choose", exact: true }).click();
    await page.getByRole("checkbox", { name: "Choose hello from four" }).check();
    await page.getByRole("checkbox", { name: "Choose hello from two" }).check();
    await page.getByText("2 chosen").waitFor();
    await check(page, "choosing");
    const chosen = page.getByRole("group", { name: "Chosen sessions" });
    await chosen.getByRole("button", { name: "Archive" }).click();
    await chosen.waitFor({ state: "detached" });
    await lists("without the archived", "hello from one,hello from three");
    await page.getByRole("button", { name: "Show archived" }).click();
    await lists("the archived", "hello from four,hello from two");
    await page.getByRole("button", { name: "Choose", exact: true }).click();
    await page.getByRole("checkbox", { name: "Choose hello from four" }).check();
    await chosen.getByRole("button", { name: "Delete" }).click();
    await page.getByRole("dialog").getByRole("listitem").getByText("hello from four").waitFor();
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    await lists("the other one", "hello from two");
    await page.getByRole("button", { name: "Choose", exact: true }).click();
    await page.getByRole("checkbox", { name: "Choose hello from two" }).check();
    await chosen.getByRole("button", { name: "Take out of the archive" }).click();
    await page.getByText("No session is archived.").waitFor();
    await page.getByRole("button", { name: "Show the others" }).click();
    await lists("all that are left", "hello from one,hello from three,hello from two");
    // A search looks everywhere.
    await menu("Archive");
    await page.waitForURL(/#\/s\/main/);
    await lists("one less, and the one that is shown", "main,hello from three,hello from two");
    await page.getByRole("searchbox", { name: "Search sessions" }).fill("hello from");
    await eventually("all are found", async () => (await list.locator("mark").count()) === 3);
    await page.getByRole("searchbox", { name: "Search sessions" }).fill("");

    // An empty chat says what one can ask; a choice is a text to complete.
    await page.getByRole("button", { name: "New session" }).click();
    await messages(page).getByText("You could ask, for example").waitFor();
    await check(page, "empty");
    await messages(page).getByRole("button", { name: "Remind me tomorrow at nine to …" }).click();
    const written = () => page.getByRole("textbox", { name: "Message" }).inputValue();
    await eventually("the text to complete", async () => (await written()) === "Remind me tomorrow at nine to ");
    assert.deepEqual(page.foreign, []);
  },

  async tables() {
    const page = await open({ viewport: { width: 375, height: 740 } });
    await signIn(page, TOKEN, "/#/s/tables");
    await ready(page);
    await say(page, "please tabulate");
    await messages(page).getByText("That is all.").waitFor();
    // The page draws an answer anew when it ends, so a look may meet cells that are gone.
    const lines = () =>
      messages(page).locator("th, td").evaluateAll((cells) =>
        cells.map((cell) => {
          const words = document.createRange();
          words.selectNodeContents(cell);
          return words.getClientRects().length;
        }),
      );
    await eventually("each word is on one line", async () => String(await lines()) === String(Array(12).fill(1)));
    await check(page, "tables");
    // The table scrolls within its place, also with the keyboard.
    await page.setViewportSize({ width: 375, height: 740 });
    const place = messages(page).getByRole("group", { name: "table" });
    await place.focus();
    await page.keyboard.press("ArrowRight");
    await eventually("the table scrolls", () => place.evaluate((one) => one.scrollLeft > 0));
  },

  async files() {
    const page = await open();
    await signIn(page, TOKEN, "/#/s/files");
    await ready(page);
    await say(page, "please send files");
    const files = messages(page).getByRole("list", { name: "Files" });
    const picture = files.getByRole("img", { name: "chart.png" });
    await picture.waitFor();
    await eventually("the picture is drawn", () => picture.evaluate((image) => image.complete && image.naturalWidth === 1));
    assert(!(await messages(page).innerText()).includes("MEDIA:"), "no line for the program is shown");
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      files.getByRole("button", { name: "report.txt" }).click(),
    ]);
    assert.equal(download.suggestedFilename(), "report.txt");
    assert.equal(readFileSync(await download.path(), "utf8"), "the report\n");
    await check(page, "files");
    // The same after the page is loaded again.
    await page.reload();
    await ready(page);
    await picture.waitFor();
    // A drawing is a picture too, in which nothing runs.
    await say(page, "please send drawings");
    const drawing = messages(page).getByRole("img", { name: "drawing.svg" });
    await eventually("the drawing is shown", () => drawing.evaluate((image) => image.complete && image.naturalWidth === 30));
    await page.waitForTimeout(500);
    assert.equal(await page.evaluate(() => globalThis.hacked), undefined);
    assert.deepEqual(page.foreign, []);
  },

  /** A picture that was made goes with its answer, also if that comes later than a request waits, and after a reload. */
  async pictures() {
    const page = await open();
    await page.route("**/api/messages/*", (route) => route.continue({ url: route.request().url().replace("wait=60", "wait=0") }));
    await signIn(page, TOKEN, "/#/s/pictures");
    await ready(page);
    const asked = page.waitForResponse(/api\/messages\//);
    await say(page, "please paint");
    assert.equal((await (await asked).json()).state, "open");
    const files = messages(page).getByRole("list", { name: "Files" });
    await files.getByText(/^picture-\w+\.png$/).waitFor();
    console.log("the name is seen");
    const picture = files.getByRole("img", { name: /^picture-\w+\.png$/ });
    const isDrawn = () => picture.evaluate((image) => image.complete && image.naturalWidth === 1);
    await eventually("the picture is drawn", isDrawn);
    await idle(page);
    await check(page, "pictures");
    await page.reload();
    await ready(page);
    await eventually("the picture is there again", isDrawn);
    assert.equal(await picture.count(), 1);
    assert.deepEqual(page.foreign, []);
  },

  /** A document in a frame is seen, and runs, loads and reaches nothing. Its address works once. */
  async documents() {
    const page = await open();
    await signIn(page, TOKEN, "/#/s/documents");
    await ready(page);
    await say(page, "please send pages");
    const files = messages(page).getByRole("list", { name: "Files" });
    await files.getByRole("button", { name: "Show page.html" }).click();
    const element = messages(page).locator("iframe.document");
    const frame = messages(page).frameLocator("iframe.document");
    const heading = frame.getByRole("heading", { name: "The report" });
    await heading.waitFor();
    assert.equal(await element.getAttribute("sandbox"), "");
    const colour = await heading.evaluate((one) => getComputedStyle(one).color);
    assert.equal(colour, "rgb(1, 2, 3)", "its own styles hold");
    const again = await fetch(GATEWAY + (await element.getAttribute("src")));
    assert.equal(again.status, 404);
    // As a document of its own, outside of the frame, it may do as little.
    const headers = { authorization: `Bearer ${TOKEN}` };
    const made = page.waitForResponse((response) => response.url().endsWith("/view"));
    await files.getByRole("button", { name: "Close page.html" }).click();
    await element.waitFor({ state: "detached" });
    await files.getByRole("button", { name: "Show page.html" }).click();
    const part = (await made).url();
    await heading.waitFor();
    const { url } = await (await fetch(part, { method: "POST", headers })).json();
    const answer = await fetch(GATEWAY + url);
    const policy = answer.headers.get("content-security-policy").split(";").map((one) => one.trim());
    for (const one of ["default-src 'none'", "form-action 'none'", "frame-ancestors 'self'", "sandbox"]) assert(policy.includes(one), one);
    assert.equal(answer.headers.get("x-content-type-options"), "nosniff");
    // It is read as UTF-8 whatever it says, in which the gateway has looked for frames.
    assert.deepEqual([...new Uint8Array(await answer.arrayBuffer()).slice(0, 3)], [0xef, 0xbb, 0xbf]);
    const alone = await page.context().newPage();
    const { url: second } = await (await fetch(part, { method: "POST", headers })).json();
    await alone.goto(GATEWAY + second);
    await alone.getByRole("heading", { name: "The report" }).waitFor();
    await alone.close();
    // Without the token nobody makes an address.
    assert.equal((await fetch(part, { method: "POST" })).status, 401);
    await check(page, "documents");

    // Nobody is led away, not even by a click.
    const at = page.url();
    await frame.getByRole("button", { name: "Send" }).click();
    await frame.getByRole("link", { name: "new" }).click();
    await frame.getByRole("link", { name: "up" }).click();
    await page.waitForTimeout(500);
    await heading.waitFor();
    await frame.getByRole("link", { name: "home" }).click();
    await heading.waitFor({ state: "detached" });
    assert.equal(await frame.getByLabel("Token").count(), 0, "the page is not shown in a frame");
    await files.getByRole("button", { name: "Close page.html" }).click();

    // A browser's viewer shows a PDF, in which nothing acts by itself.
    await files.getByRole("button", { name: "Show page.pdf" }).click();
    await eventually("the viewer shows the PDF", () => page.frames().some((one) => one.url().startsWith("chrome-extension:")));
    await page.waitForTimeout(1_500);
    await shot(page, "documents-pdf");

    assert.equal(page.url(), at);
    assert.equal(page.context().pages().length, 1);
    const left = await page.evaluate(() => [globalThis.hacked, document.cookie, localStorage.hacked, sessionStorage.hacked]);
    assert.deepEqual(left, [undefined, "", undefined, undefined]);
    assert.notEqual(await page.title(), "hacked");
  },

  /** Formulas are drawn by a file that loads when an answer has some. */
  async formulas() {
    const page = await open();
    const loaded = [];
    page.on("request", (request) => loaded.push(new URL(request.url()).pathname));
    await signIn(page, TOKEN, "/#/s/formulas");
    await ready(page);
    await say(page, "hello");
    await messages(page).getByText("Good morning.").waitFor();
    await idle(page);
    assert(!loaded.includes("/math.js"));
    await say(page, "please show formulas");
    const formulas = messages(page).locator("math");
    await messages(page).getByText("The end.").waitFor();
    await idle(page);
    await eventually("the formulas are drawn", async () => (await formulas.count()) === 5);
    await messages(page).locator("math msqrt").waitFor({ state: "attached" });
    assert(loaded.includes("/math.js"));
    assert.equal(await messages(page).locator("math msqrt").count(), 1);
    assert.equal(await messages(page).locator("math mtable mtd").count(), 4);
    await messages(page).getByText("it costs $5 and $10, or $5–$10, in $HOME and $PATH, $x$,").waitFor();
    // What cannot be drawn, and what may not be, stays as it was written.
    assert.deepEqual(await messages(page).locator("code.language-math").allInnerTexts(), [
      "\\frac{1}{",
      "\\href{javascript:window.hacked=1}{x}",
      "\\includegraphics{http://127.0.0.1/x.png}",
      "\\def\\a{\\a\\a}\\a",
      "\\style{position:fixed}{x}",
    ]);
    assert.equal(await messages(page).locator("math [href], math [style*=fixed], math script").count(), 0);
    // A wide one scrolls by itself, also with the keyboard.
    await page.setViewportSize({ width: 375, height: 740 });
    const wide = messages(page).getByRole("group", { name: "formula" }).last();
    await wide.focus();
    await page.keyboard.press("ArrowRight");
    await eventually("the formula scrolls", () => wide.evaluate((one) => one.scrollLeft > 0));
    await check(page, "formulas");
    await page.reload();
    await eventually("they are drawn again", async () => (await formulas.count()) === 5);
    assert.equal(await page.evaluate(() => globalThis.hacked), undefined);
    assert.deepEqual(page.foreign, []);
  },

  /** Diagrams are drawn in a frame that reaches nothing, and shown as pictures. */
  async diagrams() {
    const page = await open();
    const loaded = [];
    page.on("request", (request) => loaded.push(new URL(request.url()).pathname));
    await signIn(page, TOKEN, "/#/s/diagrams");
    await ready(page);
    await say(page, "hello");
    await messages(page).getByText("Good morning.").waitFor();
    await idle(page);
    assert(!loaded.some((path) => /mermaid|diagrams/.test(path)), String(loaded));
    await say(page, "please draw");
    await messages(page).getByText("That is all.").waitFor();
    const diagrams = messages(page).getByRole("img", { name: "diagram" });
    const isDrawn = (image) => image.complete && image.naturalWidth > 0;
    await eventually("two are drawn", async () => (await diagrams.count()) >= 2);
    for (const number of [0, 1]) await eventually("it is seen", () => diagrams.nth(number).evaluate(isDrawn));
    await messages(page).getByText("The diagram cannot be drawn: No diagram type detected").waitFor();
    // One of ten thousand lines is not tried. One that takes long is drawn or given up, and the page goes on meanwhile.
    await messages(page).getByText("The diagram is too large to be drawn.").waitFor();
    await page.getByRole("textbox", { name: "Message" }).fill("meanwhile");
    await eventually("the last one is over", async () => (await diagrams.count()) + (await messages(page).locator(".diagram-note").count()) === 5);
    await messages(page).locator("figure.diagram summary").first().click();
    await messages(page).locator("figure.diagram pre").first().getByText("flowchart LR").waitFor();
    await check(page, "diagrams");

    // What follows asks for others, in vain: the test sees that nobody comes.
    assert.deepEqual(page.foreign, []);
    // A script in the frame would reach neither the page, nor the gateway, nor another server.
    const frame = page.frames().find((one) => one.url().endsWith("/mermaid.html"));
    const reached = await frame.evaluate(
      async ([gateway, stranger]) => {
        const tries = {
          page: () => parent.document.title,
          storage: () => localStorage.length,
          cookies: () => document.cookie.length,
          gateway: () => fetch(`${gateway}/api/status`),
          stranger: () => fetch(`http://127.0.0.1:${stranger}/`, { mode: "no-cors" }),
          socket: () => new Promise((done, fail) => Object.assign(new WebSocket(`ws://127.0.0.1:${stranger}/`), { onopen: done, onerror: fail })),
          picture: () => new Promise((done, fail) => Object.assign(new Image(), { onload: done, onerror: fail, src: `http://127.0.0.1:${stranger}/` })),
          eval: () => globalThis.eval("1"),
          top: () => (top.location.href = `http://127.0.0.1:${stranger}/`),
        };
        const reached = [];
        for (const [name, one] of Object.entries(tries)) {
          try {
            await one();
            reached.push(name);
          } catch {}
        }
        return reached;
      },
      [GATEWAY, STRANGER],
    );
    assert.deepEqual(reached, []);
    assert.equal(await page.evaluate(() => globalThis.hacked), undefined);
    // Nobody else frames it, and it comes uncompressed too.
    const answer = await fetch(`${GATEWAY}/mermaid.html`);
    assert(answer.headers.get("content-security-policy").endsWith("sandbox allow-scripts"));
    assert.equal(answer.headers.get("x-frame-options"), "SAMEORIGIN");
    const plain = await fetch(`${GATEWAY}/mermaid.js`, { headers: { "accept-encoding": "identity" } });
    assert.equal(plain.headers.get("content-encoding"), null);
    assert((await plain.text()).length > 1_000_000);
    // A page without an origin gets that script, and nothing else.
    for (const [path, status] of [["/mermaid.js", 200], ["/app.js", 403], ["/api/status", 403]]) {
      assert.equal((await fetch(GATEWAY + path, { headers: { origin: "null" } })).status, status, path);
    }
  },

  /** A goal is worked on from the page, which rests while the goal is looked at; commands of the gateway are obeyed. */
  async goals() {
    const page = await open();
    await signIn(page);
    await ready(page);
    await say(page, "/goal !");
    await messages(page).getByText("needs a condition").waitFor();
    await holds(page.getByRole("textbox", { name: "Message" }), "/goal !");
    await say(page, "/goal !touch looking; while [ ! -e go ]; do sleep 0.02; done");
    await eventually("the look", async () => existsSync(join(process.env.WORKSPACE, "looking")));
    // Who has watched, and who comes while the goal is looked at, see a session at rest.
    const later = await open();
    await signIn(later);
    await ready(later);
    for (const one of [page, later]) {
      await messages(one).getByText("Good morning.").waitFor();
      await idle(one);
      assert.equal(await one.getByRole("img", { name: "works" }).count(), 0);
    }
    await say(later, "/goal");
    await messages(later).getByText("(at work, 19 turns left").waitFor();
    writeFileSync(join(process.env.WORKSPACE, "go"), "");
    for (const one of [page, later]) await messages(one).getByText("the goal is reached").waitFor();
    await say(page, "/goal");
    await messages(page).getByText("there is no goal").waitFor();
    await check(page, "goals");
    await say(page, "/context");
    await messages(page).getByText("tokens").first().waitFor();
    // Back before the message, which stands in the editor of the session that goes on.
    await say(page, "hello");
    await messages(page).getByText("Good morning.").nth(1).waitFor();
    await idle(page);
    await say(page, "/rewind");
    await messages(page).getByText("/rewind NUMBER goes back").waitFor();
    await say(page, "/rewind 1");
    await page.locator('h1[title="main"]').waitFor({ state: "detached" });
    await holds(page.getByRole("textbox", { name: "Message" }), "hello");
    assert.deepEqual(page.foreign, []);
  },

  /** IRC, XMPP and e-mail are added with what a server of one's own needs, which is not at the usual port. */
  async "own-servers"() {
    const page = await open();
    await signIn(page, TOKEN, "/#/channels");
    const adding = page.getByRole("region", { name: "Add a channel" });
    for (const [kind, { values, secrets, found }] of Object.entries(JSON.parse(process.env.CHANNELS))) {
      await adding.getByRole("combobox", { name: "Channel" }).selectOption(kind);
      const field = (key) => adding.getByLabel(new RegExp(`^${key.replace(".", "\\.")} `));
      for (const [key, value] of Object.entries({ ...values, ...secrets })) await field(key).fill(value);
      await adding.getByRole("button", { name: "Try and keep" }).click();
      await adding.getByRole("status").getByText(`It works: ${found}`).waitFor();
      const card = page.getByRole("article", { name: `${kind} default` });
      await card.getByText("working").waitFor();
      // What is no text comes back as what was written.
      await card.getByRole("button", { name: "Repair" }).click();
      const repair = card.getByRole("form", { name: `Repair ${kind} default` });
      for (const [key, value] of Object.entries(values)) await holds(repair.getByLabel(new RegExp(`^${key.replace(".", "\\.")} `)), value);
      await repair.getByRole("button", { name: "Try and keep" }).click();
      await repair.waitFor({ state: "detached" });
    }
    await check(page, "own-servers");
    assert.deepEqual(page.foreign, []);
  },

  /** The commands of the owner are offered after a slash, and become messages. */
  async "written-commands"() {
    const page = await open();
    await signIn(page);
    await ready(page);
    const box = page.getByRole("textbox", { name: "Message" });
    const offers = page.getByRole("listbox", { name: "Commands" });
    await box.pressSequentially("/ti");
    await offers.getByRole("option", { name: "/tidy Tidies <b>one</b> directory" }).waitFor();
    assert.equal(await offers.getByRole("option").count(), 1);
    await page.keyboard.press("ArrowDown");
    await check(page, "commands");
    await page.keyboard.press("Enter");
    await holds(box, "/tidy ");
    await box.pressSequentially("src");
    assert.equal(await offers.count(), 0);
    await page.keyboard.press("Enter");
    await messages(page).getByText("Tidy the directory src.").waitFor();
    await answered(page, 1);
    // One in a directory, with a click. Those of the page and of the program are there too.
    await box.fill("/");
    await offers.getByRole("option", { name: "/new begins a new session" }).waitFor();
    await box.fill("/comm");
    await offers.getByRole("option", { name: "/git:commit" }).click();
    await page.keyboard.press("Enter");
    await messages(page).getByText("Commit.", { exact: true }).waitFor();
    await answered(page, 2);
    // Escape hides them. What cannot be used says why, and the line is still there.
    await box.fill("/needy");
    await offers.waitFor();
    await page.keyboard.press("Escape");
    await offers.waitFor({ state: "detached" });
    await page.keyboard.press("Enter");
    await messages(page).getByText("/needy needs arguments").waitFor();
    await holds(box, "/needy");
    // Other lines with a slash are messages.
    await say(page, "/home/x is not one");
    await messages(page).getByText("/home/x is not one").waitFor();
    await answered(page, 3);
    // What is no command is not sent, unless a space stands before it.
    await say(page, "/tydi src");
    await messages(page).getByText("There is no command /tydi; did you mean /tidy?").waitFor();
    await holds(box, "/tydi src");
    await say(page, "/modle");
    await messages(page).getByText("There is no command /modle; did you mean /model?").waitFor();
    await say(page, "/xyzxyz now");
    await messages(page).getByText("There is no command /xyzxyz. /help lists the commands; a space before the slash makes it a message.").waitFor();
    await say(page, " /stop is a word");
    await answered(page, 4);
    await say(page, " /new");
    await answered(page, 5);
    assert.deepEqual(page.foreign, []);
  },

  /** The library of prompts: the same on every device, and in the terminal. */
  async prompts() {
    const page = await open();
    await signIn(page, TOKEN, "/#/s/prompts");
    await ready(page);
    const box = page.getByRole("textbox", { name: "Message" });
    const library = page.getByRole("dialog", { name: "Prompts" });
    const shown = (name) => library.getByRole("listitem", { name, exact: true });
    const show = () => page.getByRole("button", { name: "Prompts" }).click();
    await show();
    await library.getByText("There is no prompt yet.").waitFor();
    await check(page, "prompts-empty");
    await library.getByRole("button", { name: "Close" }).click();
    await library.waitFor({ state: "detached" });
    // What is written is kept, after a name that cannot be used was refused.
    await box.fill("Translate $1 into German:\n\n$ARGUMENTS");
    await show();
    await library.getByRole("button", { name: "Keep what is written" }).click();
    await library.getByLabel(/^Name/).fill("../translate");
    await library.getByLabel(/^What it is for/).fill("Translates <b>words</b>: all of them");
    await library.getByRole("button", { name: "Save" }).click();
    await library.getByRole("alert").getByText("the name of a prompt is made of letters").waitFor();
    await check(page, "prompt-edit");
    await library.getByLabel(/^Name/).fill("text:translate");
    await library.getByRole("button", { name: "Save" }).click();
    await shown("text:translate").getByText("Translates <b>words</b>: all of them").waitFor();
    await library.getByRole("button", { name: "Keep what is written" }).click();
    await library.getByLabel(/^Name/).fill("greet");
    await library.getByLabel(/^Text/).fill("Say hello.");
    await library.getByRole("button", { name: "Save" }).click();
    await shown("greet").getByText("Say hello.").waitFor();
    await check(page, "prompts");
    // A search looks into the texts too.
    await library.getByRole("searchbox").fill("GERMAN");
    await shown("greet").waitFor({ state: "detached" });
    assert.equal(await library.getByRole("listitem").count(), 1);
    await library.getByRole("searchbox").fill("");
    await shown("greet").waitFor();
    await page.keyboard.press("Escape");
    await library.waitFor({ state: "detached" });

    // What stands in the places is asked for, also several words.
    await box.fill("");
    await show();
    await shown("text:translate").getByRole("button", { name: "Insert" }).click();
    await library.getByLabel("$1").fill("the words");
    await library.getByLabel("$ARGUMENTS").fill("good $1 morning");
    await check(page, "prompt-fill");
    await library.getByRole("button", { name: "Insert" }).click();
    await library.waitFor({ state: "detached" });
    await holds(box, "Translate the words into German:\n\ngood $1 morning");
    // It stands behind what is written.
    await show();
    await shown("greet").getByRole("button", { name: "Insert" }).click();
    await library.waitFor({ state: "detached" });
    await holds(box, "Translate the words into German:\n\ngood $1 morning\n\nSay hello.");
    await box.fill("");
    // A prompt is a command at once.
    await box.pressSequentially("/gre");
    await page.getByRole("listbox", { name: "Commands" }).getByRole("option", { name: "/greet" }).click();
    await page.keyboard.press("Enter");
    await messages(page).getByText("Say hello.").waitFor();
    await answered(page, 1);

    // Another device has the same. Who changes what somebody else has changed meanwhile is told.
    const phone = await open({ viewport: { width: 375, height: 740 } });
    await signIn(phone, TOKEN, "/#/s/prompts");
    await ready(phone);
    await phone.getByRole("button", { name: "Prompts" }).click();
    const onPhone = phone.getByRole("dialog", { name: "Prompts" });
    await onPhone.getByRole("listitem", { name: "greet" }).getByRole("button", { name: "Edit" }).click();
    await onPhone.getByLabel(/^Text/).fill("Say good night.");
    await show();
    await shown("greet").getByRole("button", { name: "Edit" }).click();
    await library.getByLabel(/^Text/).fill("Say goodbye.");
    await library.getByRole("button", { name: "Save" }).click();
    await shown("greet").getByText("Say goodbye.").waitFor();
    await onPhone.getByRole("button", { name: "Save" }).click();
    await onPhone.getByRole("alert").getByText("was changed elsewhere meanwhile").waitFor();
    await shot(phone, "prompts-phone");
    await shown("greet").getByRole("button", { name: "Delete", exact: true }).click();
    await shown("greet").getByRole("button", { name: "Delete it for good" }).click();
    await shown("greet").waitFor({ state: "detached" });
    await onPhone.getByRole("button", { name: "Save" }).click();
    await onPhone.getByRole("alert").getByText("it was deleted elsewhere").waitFor();
    await page.keyboard.press("Escape");
    await box.pressSequentially("/gre");
    assert.equal(await page.getByRole("listbox", { name: "Commands" }).count(), 0);
    assert.deepEqual([...page.foreign, ...phone.foreign], []);
  },

  /** Sessions in folders, in which they stay however old they are. */
  async folders() {
    const page = await open();
    await signIn(page, TOKEN, "/#/s/one");
    await ready(page);
    const list = page.getByRole("navigation", { name: "Sessions" });
    const folder = (name) => list.locator("details.folder").filter({ has: page.locator("summary", { hasText: name }) });
    const dialog = page.getByRole("dialog", { name: "Move to a folder" });
    const move = async (name) => {
      await page.getByLabel("Session menu").click();
      await page.getByRole("button", { name: "Move to a folder", exact: true }).click();
      await dialog.getByRole("combobox").fill(name);
      await dialog.getByRole("button", { name: "Move" }).click();
      await dialog.waitFor({ state: "detached" });
    };
    await list.getByText("hello from one").waitFor();
    await move("Garden & <b>home</b>");
    await folder("Garden & <b>home</b>").getByText("hello from one").waitFor();
    await page.getByRole("button", { name: "Choose", exact: true }).click();
    for (const name of ["two", "three"]) await page.getByRole("checkbox", { name: `Choose hello from ${name}` }).check();
    await page.getByRole("group", { name: "Chosen sessions" }).getByRole("button", { name: "Move to a folder" }).click();
    await dialog.getByRole("combobox").fill("Work");
    await dialog.getByRole("button", { name: "Move" }).click();
    await folder("Work").getByText("hello from three").waitFor();
    assert.equal(await folder("Work").getByRole("listitem").count(), 2);
    await check(page, "folders");
    // Folded, also with the keyboard; unfolded again after a reload.
    await folder("Work").locator("summary").press("Enter");
    await folder("Work").getByText("hello from three").waitFor({ state: "hidden" });
    await page.reload();
    await folder("Work").getByText("hello from three").waitFor();
    // Another browser has the same folders.
    const other = await open();
    await signIn(other);
    await other.locator("details.folder").nth(1).getByText("hello from two").waitFor();
    // Out of it again, and the folder with it.
    await page.locator('h1[title="one"]').waitFor();
    await move("");
    await folder("Garden").waitFor({ state: "detached" });
    await list.getByText("hello from one").waitFor();
    assert.deepEqual([...page.foreign, ...other.foreign], []);
  },

  /** A reminder comes where it was asked for; the list of other chats says that something is new. */
  async reminders() {
    const page = await open();
    await signIn(page, TOKEN, "/#/s/main");
    await ready(page);
    await say(page, "please remind");
    await messages(page).getByText("The tool is done.").waitFor();
    await idle(page);
    await makeDue();
    // Nobody touches this page.
    await messages(page).getByText("Scheduled message", { exact: false }).waitFor();
    await messages(page).getByText("It is time to water.").waitFor();
    await idle(page);
    assert.equal(await messages(page).getByText("It is time to water.").count(), 1);
    const list = page.getByRole("navigation", { name: "Sessions" });
    const other = list.getByRole("link").filter({ hasText: "hello from the attic" });
    await enter(page, "attic");
    await say(page, "hello from the attic");
    await answered(page, 1);
    await other.waitFor();
    assert.equal(await list.getByText("new", { exact: true }).count(), 0);
    // One that comes while another chat is shown is a mark there, and opening the chat takes the mark away.
    await say(page, "please remind");
    await messages(page).getByText("The tool is done.").waitFor();
    await idle(page);
    await enter(page, "main");
    assert.equal(await list.getByText("new", { exact: true }).count(), 0);
    await makeDue();
    await other.getByText("new", { exact: true }).waitFor();
    await check(page, "news");
    await other.click();
    await messages(page).getByText("It is time to water.").waitFor();
    await eventually("nothing is new", async () => (await list.getByText("new", { exact: true }).count()) === 0);
    await page.reload();
    await other.waitFor();
    assert.equal(await list.getByText("new", { exact: true }).count(), 0);
    assert.deepEqual(page.foreign, []);
  },

  /** A phone scans a code, and signal-cli becomes a further device of its account. */
  async "signal-link"() {
    const { DAEMON } = process.env;
    const page = await open();
    await signIn(page, TOKEN, "/#/channels");
    const adding = page.getByRole("region", { name: "Add a channel" });
    await adding.getByRole("combobox", { name: "Channel" }).selectOption("signal");
    await adding.getByLabel(/^baseUrl/).fill(DAEMON);
    const link = adding.getByRole("button", { name: "Link a phone with a QR code" });
    await link.click();
    const code = adding.getByRole("img", { name: /^QR code of sgnl:/ });
    await code.waitFor();
    await check(page, "signal-link");
    const address = await readCode(await code.screenshot());
    assert.match(address, /^sgnl:\/\/linkdevice\?uuid=u0&pub_key=/);
    // What goes wrong is said, and one tries again.
    console.log("scan the first");
    await adding.getByRole("alert").getByText("already exists").waitFor();
    await code.waitFor({ state: "detached" });
    await link.click();
    await code.waitFor();
    console.log("scan the second");
    await adding.getByText("Linked to +4915112345678.").waitFor();
    await holds(adding.getByLabel(/^account/), "+4915112345678");
    await adding.getByRole("button", { name: "Try and keep" }).click();
    await adding.getByRole("status").getByText("It works: +4915112345678 through signal-cli").waitFor();
    await page.getByRole("article", { name: "signal default" }).getByText("working").waitFor();
    assert.deepEqual(page.foreign, []);
  },

  /** The files of the workspace: what is there, down and up. */
  async workspace() {
    const page = await open();
    await signIn(page, TOKEN, "/#/files");
    const files = page.getByRole("region", { name: "Files" });
    const table = files.getByRole("group", { name: "Files" });
    const row = (name) => table.getByRole("button", { name, exact: true });
    await row("notes.md").click();
    await files.getByRole("group", { name: "content" }).getByText("<b>my</b> notes").waitFor();
    await check(page, "files");
    const [download] = await Promise.all([page.waitForEvent("download"), files.locator(".files").getByRole("button", { name: "notes.md" }).click()]);
    assert.equal(readFileSync(await download.path(), "utf8"), "<b>my</b> notes\n");
    // Nothing that leads out of the workspace is listed.
    assert.equal(await row("link").count(), 0);
    await row("sub").click();
    await row("page.html").click();
    await files.getByRole("button", { name: "Show page.html" }).click();
    const frame = page.frameLocator("iframe.document");
    await frame.getByRole("heading", { name: "The report" }).waitFor();
    assert.equal(await page.evaluate(() => window.hacked), undefined);
    await row("drawing.svg").click();
    await files.getByRole("img", { name: "drawing.svg" }).waitFor();
    assert.equal(await page.evaluate(() => window.hacked), undefined);
    await row("page.pdf").click();
    await files.getByRole("button", { name: "Show page.pdf" }).waitFor();
    // Up, beside what is there; a name that is taken stays as it is.
    const upload = page.locator("input[type=file]");
    const file = (name, text) => ({ name, mimeType: "text/plain", buffer: Buffer.from(text) });
    await upload.setInputFiles([file("new.txt", "brought"), file("page.html", "replaced")]);
    await files.getByRole("status").getByText("Uploaded: new.txt.").waitFor();
    await files.getByRole("alert").getByText("give the file another name").waitFor();
    await row("new.txt").click();
    await files.getByRole("group", { name: "content" }).getByText("brought").waitFor();
    await page.getByRole("navigation", { name: "Place" }).getByRole("button").first().click();
    await row("notes.md").waitFor();
    assert.deepEqual(page.foreign, []);
  },

  async setup() {
    const page = await open();
    await signIn(page);
    await page.getByRole("heading", { name: "Set up MyClaw: model" }).waitFor();
    await check(page, "setup");
    await page.getByLabel("Provider").selectOption("anthropic");
    await page.getByLabel("Address").fill(process.env.MODEL);
    await page.getByLabel("Key").fill("wrong-key");
    await page.getByRole("button", { name: "Try and keep" }).click();
    await page.getByRole("alert").filter({ hasText: "does not answer" }).waitFor();
    await page.getByLabel("Key").fill("right-key");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Set up MyClaw: workspace" }).waitFor();
    await page.getByText(/claude-sonnet-4-6 answered in/).waitFor();
    assert(!(await page.content()).includes("right-key"));
    await page.getByRole("button", { name: "Go on" }).click();
    await page.getByRole("heading", { name: "Set up MyClaw: channel" }).waitFor();
    await check(page, "setup-channel");
    await page.getByRole("button", { name: "Finish without" }).click();
    await ready(page);
    await say(page, "hello");
    await messages(page).getByText("Good morning.").waitFor();
    await page.close();
  },

  async config() {
    const page = await open();
    const body = (answer) => answer.json();
    let hostile = false;
    await page.route("**/api/config", async (route) => {
      const answer = await route.fetch();
      if (!hostile || route.request().method() !== "GET") return route.fulfill({ response: answer });
      const json = await body(answer);
      json.schema.properties.logging.description = "<img src=x onerror='window.hacked=1'> and <b>bold</b>";
      await route.fulfill({ response: answer, json });
    });
    await signIn(page, TOKEN, "/#/config");
    const sections = page.getByRole("navigation", { name: "Sections" });
    // It begins with the ten things that people change most. Each is the setting itself.
    const often = page.getByRole("region", { name: "often changed" });
    await often.getByLabel("Your time zone", { exact: true }).waitFor();
    assert.equal(await often.locator(":scope > :not(h2)").count(), 10);
    await check(page, "config-often");
    await sections.getByRole("button", { name: "provider" }).click();
    // A secret is never in the page; a reference is.
    assert(!(await page.content()).includes("sk-ant-in-the-file"));
    await check(page, "config");
    await sections.getByRole("button", { name: "logging" }).click();
    await page.getByLabel("level", { exact: true }).selectOption("debug");
    await sections.getByRole("button", { name: "agents" }).click();
    await page.getByText("list", { exact: true }).first().waitFor();
    await page.getByRole("button", { name: "Add to list" }).click();
    await page.getByRole("group", { name: "list" }).getByLabel("id", { exact: true }).fill("gardener");
    // A mistake is shown at its field, and nothing is written.
    await sections.getByRole("button", { name: "gateway" }).click();
    await page.getByLabel("port", { exact: true }).fill("99999");
    await page.getByText("At least 1 and at most 65,535.").waitFor();
    await page.getByRole("button", { name: "Review and save" }).click();
    const dialog = page.getByRole("dialog", { name: "Save these changes?" });
    await dialog.getByText("gateway.port: 99999").waitFor();
    await shot(page, "config-review");
    await dialog.getByRole("button", { name: "Save" }).click();
    await page.getByText("Nothing was saved: a value has a mistake.").waitFor();
    await page.getByRole("alert").filter({ hasText: "65535" }).waitFor();
    await check(page, "config-mistake");
    await page.setViewportSize({ width: 375, height: 740 });
    const isCovered = await page.getByRole("group", { name: "Changes" }).evaluate((bar) => {
      const { left, width, bottom } = bar.closest(".page").getBoundingClientRect();
      return bar.contains(document.elementFromPoint(left + width / 2, bottom - 4));
    });
    assert(isCovered, "no text shows below the bar that saves");
    await page.setViewportSize({ width: 1280, height: 800 });
    await page.getByRole("button", { name: "Unset port" }).click();
    await page.getByLabel("port", { exact: true }).fill(new URL(GATEWAY).port);
    await page.getByRole("button", { name: "Review and save" }).click();
    await dialog.getByText('logging.level: "debug"').waitFor();
    await dialog.getByRole("button", { name: "Save" }).click();
    await page.getByText("Saved, and in force. Restart the gateway to use the new logging.").waitFor();
    // Found by a word of its description, and edited in place.
    await page.getByLabel("Search settings").fill("maxRetries");
    await page.getByLabel("agent.maxRetries").fill("7");
    // Something else writes the file: nothing is lost, and nothing overwritten.
    console.log("write the file");
    // While the file is written, what is read is refused.
    await eventually("the file is written", async () => (await (await fetch(`${GATEWAY}/api/config`, { headers: { Authorization: `Bearer ${TOKEN}` } })).json()).values?.agent?.maxIterations === 9);
    await page.getByRole("button", { name: "Review and save" }).click();
    await dialog.getByRole("button", { name: "Save" }).click();
    await page.getByRole("button", { name: "Read it again" }).click();
    await page.getByText("your changes are kept").waitFor();
    await page.getByRole("button", { name: "Review and save" }).click();
    await dialog.getByRole("button", { name: "Save" }).click();
    await page.getByText("Saved, and in force.").waitFor();
    // What the schema says is text.
    hostile = true;
    await page.reload();
    await sections.getByRole("button", { name: "logging" }).click();
    await page.getByText("<img src=x onerror='window.hacked=1'> and <b>bold</b>").waitFor();
    assert.equal(await page.evaluate(() => window.hacked), undefined);
    await page.close();
  },

  async servers() {
    const page = await open();
    await signIn(page, TOKEN, "/#/status");
    const card = page.getByRole("article", { name: "MCP server faults" });
    await card.getByText("not approved").waitFor();
    // What a server says of itself is shown whole, and approved as it was shown.
    await card.getByRole("button", { name: "Look for changes" }).click();
    await card.getByText("Says the text again").waitFor();
    await check(page, "servers");
    await card.getByRole("button", { name: "Approve exactly this" }).click();
    await card.getByText("approved", { exact: true }).waitFor();
    await card.getByText("20 tools").click();
    await card.getByText("faults__echo").waitFor();
    await card.getByRole("button", { name: "Disable" }).click();
    await card.getByText("disabled", { exact: true }).waitFor();
    await card.getByRole("button", { name: "Enable" }).click();
    await card.getByText("approved", { exact: true }).waitFor();
    // A field of a form that the server asks for.
    await enter(page, "forms");
    await say(page, "please fill in");
    const ask = page.getByRole("region", { name: "approval of faults__ask" });
    await ask.getByText("How many?").waitFor();
    await check(page, "form");
    await ask.getByRole("textbox", { name: "count" }).fill("9");
    await ask.getByRole("button", { name: "Send" }).click();
    await ask.getByText("it must be a whole number from 1 to 5").waitFor();
    await ask.getByRole("textbox", { name: "count" }).fill("4");
    await ask.getByRole("button", { name: "Send" }).click();
    await messages(page).getByText("The tool is done.").waitFor();
    assert.deepEqual(page.foreign, []);
    await page.close();
  },

  async frame() {
    // What a phone needs to install the page.
    const manifest = await (await fetch(`${GATEWAY}/manifest.webmanifest`)).json();
    for (const { src, type, sizes } of manifest.icons) {
      const icon = await fetch(GATEWAY + src);
      assert.equal(icon.headers.get("content-type"), type, src);
      const bytes = Buffer.from(await icon.arrayBuffer());
      if (type === "image/png") assert.equal(`${bytes.readUInt32BE(16)}x${bytes.readUInt32BE(20)}`, sizes, src);
    }
    assert(manifest.icons.some((icon) => icon.purpose === "maskable"));

    const page = await open();
    await signIn(page);
    await ready(page);
    const rail = page.getByRole("navigation", { name: "Pages" });
    const names = (await rail.getByRole("link").allInnerTexts()).map((name) => name.trim());
    assert.equal(names[0], "Chat");
    assert.equal(await rail.locator("[aria-current=page]").innerText(), "Chat");
    // Each page is reached with the keyboard alone, has its heading, and gives it the focus.
    for (const name of names.slice(1)) {
      await rail.getByRole("link", { name }).focus();
      await page.keyboard.press("Enter");
      const heading = page.getByRole("heading", { level: 1, name, exact: true });
      await heading.waitFor();
      await eventually(`${name} has the focus`, () => heading.evaluate((one) => one === document.activeElement));
      assert.equal(await rail.locator("[aria-current=page]").innerText(), name);
      assert.match(await page.title(), new RegExp(`^${name} `));
    }
    await page.goBack();
    await page.getByRole("heading", { level: 1, name: names.at(-2), exact: true }).waitFor();
    await page.goto(`${GATEWAY}/#/nowhere`);
    await ready(page);
    // The first stop of the keyboard jumps over the frame.
    await page.goto(`${GATEWAY}/#/status`);
    await page.reload();
    await page.getByRole("heading", { level: 1, name: "Gateway" }).waitFor();
    await page.getByText(GATEWAY, { exact: true }).waitFor();
    await page.keyboard.press("Tab");
    await page.getByRole("button", { name: "Skip to the page" }).press("Enter");
    assert.equal(await page.evaluate(() => document.activeElement.tagName), "H1");
    // On a phone the pages are behind the menu, and Escape closes it.
    await page.setViewportSize({ width: 360, height: 740 });
    const usage = rail.getByRole("link", { name: "Usage" });
    await usage.waitFor({ state: "hidden" });
    await page.getByRole("button", { name: "Menu", exact: true }).click();
    await usage.waitFor();
    await settled(page);
    await shot(page, "phone-menu");
    await usage.focus();
    await page.keyboard.press("Escape");
    await usage.waitFor({ state: "hidden" });
    assert.deepEqual(page.foreign, []);
  },

  async usage() {
    const page = await open();
    await signIn(page, TOKEN, "/#/usage");
    await page.getByText("Nothing was used in this time").waitFor();
    for (const session of ["garden", "house"]) {
      await enter(page, session);
      await say(page, "hello");
      await messages(page).getByText("Good morning.").waitFor();
      await idle(page);
    }
    await page.goto(`${GATEWAY}/#/usage`);
    const tile = (name) => page.locator(".tile", { hasText: name }).locator("b");
    const sums = page.getByRole("group", { name: "Sums" });
    await sums.getByRole("rowheader", { name: "anthropic/" }).waitFor();
    // The page may be there before the last call is counted.
    await eventually("both calls are counted", async () => (await tile("Model calls").innerText()) === "2");
    await eventually("one model is listed", async () => (await sums.getByRole("row").count()) === 2);
    // Bars are drawn: pixels of the first colour.
    const painted = () =>
      page.locator(".plot canvas").evaluate((canvas) => {
        const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
        let found = 0;
        for (let at = 0; at < data.length; at += 4) if (data[at] === 0x2f && data[at + 1] === 0x7f && data[at + 2] === 0xb8) found++;
        return found;
      });
    await page.getByRole("radio", { name: "Tokens" }).check();
    await eventually("bars are drawn", async () => (await painted()) > 100);
    await page.getByText("Tokens over time, as a table").click();
    const times = page.getByRole("group", { name: "Tokens over time" }).getByRole("row");
    await eventually("one day is listed", async () => (await times.count()) === 2);
    // Another division, with the keyboard.
    await page.getByRole("radio", { name: "Model" }).focus();
    for (let step = 0; step < 3; step++) {
      await page.keyboard.press("ArrowRight");
      // The next key counts from the one that is chosen.
      await eventually("the radio button is chosen", () => page.evaluate(() => document.activeElement.checked === true));
    }
    await sums.getByRole("button", { name: /garden/ }).waitFor();
    await eventually("both sessions are listed", async () => (await sums.getByRole("row").count()) === 3);
    await page.getByRole("radio", { name: "24 hours" }).check();
    await page.getByRole("columnheader", { name: "Hour" }).waitFor();
    await check(page, "usage");
    // A session leads to its chat.
    await sums.getByRole("button", { name: /garden/ }).click();
    await messages(page).getByText("Good morning.").waitFor();
    assert.deepEqual(page.foreign, []);
    assert.deepEqual(page.console_, []);
  },

  async memory() {
    const page = await open();
    await signIn(page, TOKEN, "/#/memory");
    await page.getByText("Nothing is remembered yet.").waitFor();
    await page.getByRole("button", { name: "Remember" }).click();
    const adding = page.getByRole("dialog", { name: "Remember a fact" });
    await adding.getByRole("textbox").fill("Allergic to <b>nuts</b>.");
    await check(page, "memory-dialog");
    await adding.getByRole("button", { name: "Remember" }).click();
    const card = page.getByRole("article");
    await card.getByText("Allergic to <b>nuts</b>.").waitFor();
    await card.getByRole("button", { name: "Correct" }).click();
    const edit = page.getByRole("dialog", { name: "Correct the fact" });
    await edit.getByRole("textbox").fill("Allergic to peanuts.");
    await edit.getByRole("button", { name: "Save" }).click();
    await card.getByText("Allergic to peanuts.").waitFor();
    await card.getByRole("button", { name: "Why?" }).click();
    await card.getByRole("status").getByText("The message is not there any more").waitFor();
    await page.getByRole("searchbox").fill("peanuts");
    await page.keyboard.press("Enter");
    const found = page.getByRole("region", { name: "Found" });
    await found.getByText("Allergic to peanuts.").first().waitFor();
    await check(page, "memory");
    await card.getByRole("button", { name: "Forget" }).click();
    await page.getByRole("dialog", { name: "Forget this?" }).getByRole("button", { name: "Forget" }).click();
    await card.waitFor({ state: "detached" });
    await page.getByText("Nothing is remembered yet.").waitFor();
    assert.deepEqual(page.foreign, []);
  },

  // `crates/cli/tests/cluster/page.rs` starts it: the gateway is that of the node "one", and there is a node "two".
  async cluster() {
    const page = await open();
    await signIn(page, TOKEN, "/#/status");
    const gateways = page.getByRole("region", { name: "Gateways" });
    const row = (name) => gateways.getByRole("row").filter({ has: page.getByRole("rowheader", { name, exact: true }) });
    await row("one").getByText("ago").waitFor();
    await row("two").getByText("ago").waitFor();
    await row("walreceiver").getByText("bytes behind").waitFor();
    await check(page, "cluster");
    await gateways.getByRole("button", { name: "Drain two" }).click();
    const dialog = page.getByRole("dialog", { name: "Drain two?" });
    await dialog.getByRole("button", { name: "Cancel" }).click();
    await dialog.waitFor({ state: "detached" });
    await gateways.getByRole("button", { name: "Drain two" }).click();
    await check(page, "cluster-dialog");
    await dialog.getByRole("button", { name: "Drain", exact: true }).click();
    await row("two").waitFor({ state: "detached" });
    await row("one").getByText("ago").waitFor();
    assert.deepEqual(page.foreign, []);
    assert.deepEqual(page.console_, []);
  },

  async schedules() {
    const page = await open();
    await signIn(page, TOKEN, "/#/schedules");
    const card = page.getByRole("article", { name: "Look at the garden" });
    await page.getByRole("button", { name: "New job" }).click();
    const dialog = page.getByRole("dialog", { name: "New job" });
    await dialog.getByRole("textbox", { name: "What the agent is told" }).fill("hello garden");
    await dialog.getByRole("textbox", { name: "Name" }).fill("Look at the garden");
    await dialog.getByRole("textbox", { name: "Interval" }).fill("every now and then");
    await dialog.getByRole("button", { name: "Add" }).click();
    await dialog.getByRole("alert").waitFor();
    await check(page, "schedules-dialog");
    await dialog.getByRole("combobox", { name: "When" }).selectOption("At times of day");
    await dialog.getByRole("textbox", { name: "Cron expression" }).fill("0 9 * * 1-5");
    await dialog.getByRole("button", { name: "Add" }).click();
    await card.getByText("0 9 * * 1-5").waitFor();
    await dialog.waitFor({ state: "detached" });
    await card.getByRole("button", { name: "Edit" }).click();
    const edit = page.getByRole("dialog", { name: "Change the job" });
    await edit.getByRole("textbox", { name: "Cron expression" }).fill("30 9 * * 1-5");
    await edit.getByRole("button", { name: "Save" }).click();
    await card.getByText("30 9 * * 1-5").waitFor();
    await card.getByText("hello garden").first().waitFor();
    await card.getByRole("button", { name: "Pause" }).click();
    await card.getByText("paused").waitFor();
    await card.getByRole("button", { name: "Resume" }).click();
    await card.getByText("active").waitFor();
    await card.getByRole("button", { name: "Run now" }).click();
    await card.getByText("answered").first().waitFor();
    await card.getByText("Runs", { exact: true }).click();
    await card.getByText("by hand").waitFor();
    await card.getByText("Good morning.").waitFor();
    await check(page, "schedules");
    await card.getByRole("button", { name: "Open", exact: true }).click();
    await messages(page).getByText("hello garden").waitFor();
    await page.goBack();
    await card.getByRole("button", { name: "Remove" }).click();
    await page.getByRole("dialog", { name: "Remove this job?" }).getByRole("button", { name: "Remove" }).click();
    await card.waitFor({ state: "detached" });
    assert.deepEqual(page.foreign, []);
  },

  async channels() {
    const page = await open();
    await signIn(page, TOKEN, "/#/channels");
    const cards = page.getByRole("article");
    await cards.filter({ hasText: "telegram" }).getByText("working").waitFor();
    // Somebody asks to write, and is let in here.
    const person = page.getByRole("listitem").filter({ hasText: "telegram:7" });
    await person.getByText("asks", { exact: true }).waitFor();
    await page.getByText("Dropped since the start").waitFor();
    await check(page, "channels");
    await person.first().getByRole("button", { name: "Approve" }).click();
    await person.getByText("approved").waitFor();
    await person.first().getByRole("button", { name: "Take back" }).click();
    await eventually("taken back", async () => (await person.getByText("approved").count()) === 0);
    assert.deepEqual(page.foreign, []);
  },

  /** Every kind of channel is added from what it declares, tried first, repaired and removed; secrets never come back. */
  async "new-channels"() {
    const { BOT, SECRET } = process.env;
    const page = await open();
    const bodies = [];
    page.on("response", async (response) => bodies.push(await response.text().catch(() => "")));
    await signIn(page, TOKEN, "/#/channels");
    const adding = page.getByRole("region", { name: "Add a channel" });
    const kind = adding.getByRole("combobox", { name: "Channel" });
    await kind.waitFor();
    // All kinds are there, and each says what it needs.
    const kinds = (await (await fetch(`${GATEWAY}/api/channels/kinds`, { headers: { authorization: `Bearer ${TOKEN}` } })).json()).kinds;
    assert(kinds.length >= 11, JSON.stringify(kinds));
    for (const one of kinds) {
      await kind.selectOption(one.name);
      for (const { key } of [...one.fields, ...one.secrets]) await adding.getByLabel(new RegExp(`^${key.replace(".", "\\.")} `)).waitFor();
    }
    await kind.selectOption("whatsapp");
    await check(page, "channel-add");

    // What the vendor refuses is not written.
    await kind.selectOption("telegram");
    await adding.getByLabel(/^baseUrl/).fill(BOT);
    await adding.getByLabel(/^botToken/).fill("12345:wrong");
    await adding.getByLabel(/^Who may write/).fill("42 43");
    await adding.getByRole("button", { name: "Try and keep" }).click();
    await adding.getByRole("alert").getByText(/it cannot be used: .* Nothing was changed/).waitFor();
    assert.equal(await page.getByRole("article").count(), 0);
    await adding.getByLabel(/^botToken/).fill(SECRET);
    await adding.getByRole("button", { name: "Try and keep" }).click();
    await adding.getByRole("status").getByText("It works: @claw_bot").waitFor();
    const code = adding.getByRole("img", { name: "QR code of https://t.me/claw_bot" });
    assert.equal(await readCode(await code.screenshot()), "https://t.me/claw_bot");
    const telegram = page.getByRole("article", { name: "telegram default" });
    await telegram.getByText("working").waitFor();
    await check(page, "channel-added");

    // A second one of the same name is refused with what to do.
    await kind.selectOption("telegram");
    await adding.getByLabel(/^baseUrl/).fill(BOT);
    await adding.getByLabel(/^botToken/).fill(SECRET);
    await adding.getByRole("button", { name: "Try and keep" }).click();
    await adding.getByRole("alert").getByText("the config has channels.telegram already").waitFor();

    // It is tried and repaired; what is left empty stays.
    await telegram.getByRole("button", { name: "Test" }).click();
    await telegram.getByRole("status").getByText("It works: @claw_bot").waitFor();
    await telegram.getByRole("button", { name: "Repair" }).click();
    const repair = telegram.getByRole("form", { name: "Repair telegram default" });
    await holds(repair.getByLabel(/^baseUrl/), BOT);
    await holds(repair.getByLabel(/^botToken/), "");
    await repair.getByLabel(/^botToken/).fill("12345:wrong");
    await repair.getByRole("button", { name: "Try and keep" }).click();
    await repair.getByRole("alert").getByText("Nothing was changed").waitFor();
    await check(page, "channel-repair");
    await repair.getByLabel(/^botToken/).fill(SECRET);
    await repair.getByRole("button", { name: "Try and keep" }).click();
    await repair.waitFor({ state: "detached" });
    await telegram.getByText("working").waitFor();

    // One with a name, whose secret has signs that files of variables know.
    await kind.selectOption("webhook");
    await adding.getByLabel(/^Its name/).fill("mine");
    await adding.getByLabel(/^url /).fill(`${BOT}/answers`);
    await adding.getByLabel(/^secret /).fill("a secret # with signs");
    await adding.getByRole("button", { name: "Try and keep" }).click();
    const webhook = page.getByRole("article", { name: "webhook mine" });
    await webhook.waitFor();
    await webhook.getByRole("button", { name: "Remove" }).click();
    await webhook.getByRole("button", { name: "Remove it from the config" }).click();
    await webhook.waitFor({ state: "detached" });

    // The key comes back nowhere, and another device than the owner's may do none of this.
    const left = [await page.content(), ...bodies].filter((text) => text.includes(SECRET) || text.includes("with signs"));
    assert.deepEqual(left, []);
    assert(bodies.some((text) => text.includes("claw_bot")), "the answers were read");
    assert.deepEqual(page.foreign, []);
  },

  async devices() {
    const page = await open();
    await signIn(page, TOKEN, "/#/devices");
    await page.getByText("No other device has access").waitFor();
    await page.getByRole("radio", { name: "Only see" }).check();
    await page.getByRole("button", { name: "Make a code" }).click();
    const pairing = await page.getByRole("status").locator("code").textContent();
    // Another browser, which knows the code alone, and then its own token.
    const headers = { "Content-Type": "application/json" };
    const body = JSON.stringify({ code: pairing, name: "<b>tablet</b>", scope: "owner" });
    const paired = await (await fetch(`${GATEWAY}/api/devices/pair`, { method: "POST", headers, body })).json();
    const device = page.getByRole("listitem").filter({ hasText: "<b>tablet</b>" });
    await device.getByText("asks", { exact: true }).waitFor();
    await check(page, "devices");
    await device.getByRole("button", { name: "Approve" }).click();
    await device.getByText("approved").waitFor();
    const other = await open();
    await signIn(other, paired.token, "/#/devices");
    await other.getByText("does not allow that").waitFor();
    await device.getByRole("button", { name: "Revoke" }).click();
    await device.waitFor({ state: "detached" });
    await other.getByRole("button", { name: "Sign in" }).waitFor();

    // A phone signs in with its camera.
    const panel = page.getByRole("region", { name: "Sign in on a phone" });
    await panel.getByRole("button", { name: "Make a link" }).click();
    const code = panel.getByRole("img", { name: "QR code of the link" });
    await code.waitFor();
    await check(page, "devices-code");
    const link = await readCode(await code.screenshot());
    assert.match(link, /^http:\/\/claw\.example\.org:\d+\/#\/sign-in\/[0-9a-f]{64}$/);
    const phone = await open();
    const here = GATEWAY + new URL(link).hash.replace("#", "/#");
    await phone.goto(here);
    await ready(phone);
    // The phone is a device, which makes no links.
    await phone.goto(`${GATEWAY}/#/devices`);
    await phone.getByRole("button", { name: "Make a link" }).click();
    await phone.getByRole("alert").getByText("a link is made with the gateway's own token").waitFor();

    // The same in a terminal, whose text is light and twice as high as wide.
    const terminal = await browser.newPage();
    const rows = JSON.parse(process.env.CODE);
    const png = await terminal.evaluate((rows) => {
      const size = 6;
      const canvas = Object.assign(document.createElement("canvas"), { width: rows[0].length * size, height: rows.length * 2 * size });
      const context = canvas.getContext("2d");
      context.fillRect(0, 0, canvas.width, canvas.height);
      context.fillStyle = "white";
      rows.forEach((row, y) =>
        [...row].forEach((block, x) => {
          if ("█▀".includes(block)) context.fillRect(x * size, y * 2 * size, size, size);
          if ("█▄".includes(block)) context.fillRect(x * size, (y * 2 + 1) * size, size, size);
        }),
      );
      return canvas.toDataURL().split(",")[1];
    }, rows);
    assert.equal(await readCode(Buffer.from(png, "base64")), process.env.LINK);
    assert.deepEqual([...page.foreign, ...other.foreign], []);
  },

  /** What works on the machine, in the gateway and in a terminal: what it does; it is answered, opened and stopped here. */
  async running() {
    const page = await open();
    await signIn(page, TOKEN, "/#/running");
    const card = (name) => page.getByRole("article", { name, exact: true });
    await card("desk").getByText("works", { exact: true }).waitFor();
    await card("desk").getByText(/waits for/).waitFor();
    await enter(page, "garden");
    await say(page, "please write");
    await page.getByRole("button", { name: "Allow once" }).waitFor();
    await page.goto(`${GATEWAY}/#/running`);
    await card("garden").getByText("asks", { exact: true }).waitFor();
    await card("garden").getByText(/notes\.md/).first().waitFor();
    await check(page, "running");
    const question = card("garden").getByRole("group", { name: "question about write" });
    await question.getByRole("button", { name: "Allow once" }).click();
    await card("garden").waitFor({ state: "detached" });
    await card("desk").getByRole("button", { name: "Stop" }).click();
    await card("desk").waitFor({ state: "detached" });
    await page.getByRole("heading", { name: "Nothing works at this moment" }).waitFor();
    // What is over cannot be stopped.
    const headers = { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" };
    const refused = await fetch(`${GATEWAY}/api/running/stop`, { method: "POST", headers, body: JSON.stringify({ session: "desk" }) });
    assert.equal(refused.status, 404);
    assert.match((await refused.json()).error.message, /does nothing at this moment/);
    // One that works is opened from here.
    await enter(page, "attic");
    await say(page, "please take long");
    await messages(page).getByText("word word").waitFor();
    await page.goto(`${GATEWAY}/#/running`);
    await card("attic").getByRole("button", { name: "Open" }).click();
    await messages(page).getByText("word word").waitFor();
    await page.getByRole("button", { name: "Stop" }).click();
    await idle(page);
    assert.deepEqual(page.foreign, []);
  },

  /** Where nobody listens and speaks, nothing offers it. */
  async "no-voice"() {
    const page = await open();
    await signIn(page);
    await ready(page);
    await say(page, "hello");
    await messages(page).getByText("Good morning.").waitFor();
    await page.getByRole("button", { name: "Copy the answer" }).waitFor();
    const headers = { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" };
    const { listens, speaks } = await (await fetch(`${GATEWAY}/api/speech`, { headers })).json();
    assert.deepEqual([listens, speaks], [false, false]);
    for (const name of ["Dictate", "Read aloud"]) assert.equal(await page.getByRole("button", { name }).count(), 0);
    const refused = await fetch(`${GATEWAY}/api/speech/speak`, { method: "POST", headers, body: JSON.stringify({ text: "x" }) });
    assert.equal(refused.status, 400);
    assert.match((await refused.json()).error.message, /set `speech` in the config/);
  },

  /** What is said stands in the field; an answer is read aloud. */
  async voice() {
    // Who says no gets one sentence.
    const refusing = await open();
    await signIn(refusing);
    await refusing.getByRole("button", { name: "Dictate" }).click();
    await refusing.getByRole("alert").getByText("This browser does not let the page hear the microphone").waitFor();
    await refusing.close();

    const page = await open({ permissions: ["microphone"] });
    const loaded = [];
    page.on("request", (request) => loaded.push(new URL(request.url()).pathname));
    await signIn(page);
    await ready(page);
    await page.getByRole("button", { name: "Dictate" }).waitFor();
    assert(!loaded.includes("/voice.js"), String(loaded));
    const field = page.getByRole("textbox", { name: "Message" });
    await field.fill("Words");
    await page.getByRole("button", { name: "Dictate" }).click();
    const end = page.getByRole("button", { name: "End the recording" });
    await end.waitFor();
    await check(page, "recording");
    await end.click();
    await holds(field, "Words RIFFfrom the microphone");
    await field.fill("");

    await say(page, "hello");
    // The first answer is that of the page without a voice.
    await eventually("it is answered", async () => (await messages(page).getByText("Good morning.").count()) === 2);
    await idle(page);
    const spoken = page.waitForResponse((response) => response.url().endsWith("/api/speech/speak"));
    const buttons = page.getByRole("button", { name: "Read aloud" });
    await buttons.last().click();
    assert.equal((await spoken).headers()["content-type"], "audio/wav");
    // It has been played when the button is back.
    await eventually("it has been played", async () => (await buttons.count()) === 2);
    await check(page, "read-aloud");
    assert.equal(await page.getByRole("alert").count(), 0);

    // What is too long says so.
    await say(page, "please show formulas");
    await messages(page).getByText("The end.").waitFor();
    await idle(page);
    await eventually("the answer has its buttons", async () => (await buttons.count()) === 3);
    await buttons.last().click();
    await page.getByRole("alert").getByText(/at most 200 are spoken/).waitFor();
    assert.deepEqual(page.foreign, []);
  },

  /** A browser that is closed is notified when a call needs an approval and when a turn ends. The vendor's push service, which
   *  the test plays, cannot read it; the browser, whose keys the test has, can. */
  async notifications() {
    const keys = createECDH("prime256v1");
    keys.generateKeys();
    const auth = randomBytes(16);
    const got = [];
    let status = 201;
    const service = createServer((request, response) => {
      const chunks = [];
      request.on("data", (chunk) => chunks.push(chunk));
      request.on("end", () => {
        got.push({ path: request.url, headers: request.headers, body: Buffer.concat(chunks) });
        response.writeHead(status).end();
      });
    });
    await new Promise((done) => service.listen(0, "127.0.0.1", done));
    const origin = `http://127.0.0.1:${service.address().port}`;
    /** What the browser reads (RFC 8291). */
    const opened = (body) => {
      const [salt, theirs, sealed] = [body.subarray(0, 16), body.subarray(21, 86), body.subarray(86)];
      assert.equal(body[20], 65);
      const derived = (secret, salt, info, length) => Buffer.from(hkdfSync("sha256", secret, salt, info, length));
      const info = Buffer.concat([Buffer.from("WebPush: info\0"), keys.getPublicKey(), theirs]);
      const input = derived(keys.computeSecret(theirs), auth, info, 32);
      const key = derived(input, salt, "Content-Encoding: aes128gcm\0", 16);
      const decipher = createDecipheriv("aes-128-gcm", key, derived(input, salt, "Content-Encoding: nonce\0", 12));
      decipher.setAuthTag(sealed.subarray(-16));
      const text = Buffer.concat([decipher.update(sealed.subarray(0, -16)), decipher.final()]);
      assert.equal(text.at(-1), 2);
      return JSON.parse(text.subarray(0, -1));
    };
    /** A browser whose vendor is the test. */
    const browserOf = async (permissions) => {
      const page = await open();
      await page.context().grantPermissions(permissions, { origin: GATEWAY });
      await page.addInitScript(
        ({ endpoint, p256dh, auth }) => {
          const made = () => ({
            endpoint,
            options: {},
            toJSON: () => ({ endpoint, keys: { p256dh, auth } }),
            unsubscribe: async () => localStorage.removeItem("test.key") ?? true,
          });
          PushManager.prototype.subscribe = async ({ applicationServerKey }) => {
            localStorage.setItem("test.key", btoa(String.fromCharCode(...applicationServerKey)));
            return made();
          };
          PushManager.prototype.getSubscription = async () => (localStorage.getItem("test.key") ? made() : null);
        },
        { endpoint: `${origin}/push/1`, p256dh: keys.getPublicKey("base64url"), auth: auth.toString("base64url") },
      );
      await signIn(page, TOKEN, "/#/devices");
      await page.getByRole("region", { name: "Notifications" }).waitFor();
      return page;
    };
    const asked = async (path, body) => {
      const headers = { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" };
      const answer = await fetch(GATEWAY + path, body ? { method: "POST", headers, body: JSON.stringify(body) } : { headers });
      return [answer.status, await answer.json()];
    };

    // Who says no gets one sentence.
    const refusing = await browserOf([]);
    await refusing.getByRole("button", { name: "Switch on in this browser" }).click();
    await refusing.getByRole("alert").getByText("This browser does not allow notifications of this page").waitFor();
    await refusing.close();

    const page = await browserOf(["notifications"]);
    const part = page.getByRole("region", { name: "Notifications" });
    await part.getByRole("button", { name: "Switch on in this browser" }).click();
    await part.getByRole("status").getByText("Notifications are on in this browser.").waitFor();
    await part.getByRole("listitem").getByText("(this one)").waitFor();
    await check(page, "notifications");
    await part.getByRole("button", { name: "Send a test" }).click();
    await part.getByRole("status").getByText("A notification was sent").waitFor();
    assert.equal(got.length, 1);
    const test = opened(got[0].body);
    assert.equal(test.tag, "test");
    assert.equal(got[0].path, "/push/1");
    assert.equal(got[0].headers["content-encoding"], "aes128gcm");
    assert(Number(got[0].headers.ttl) > 0);
    // The service knows the sender by its key, which is the one that the browser got.
    const [, token, key] = /^vapid t=([\w.-]+), k=([\w-]+)$/.exec(got[0].headers.authorization);
    const point = Buffer.from(key, "base64url");
    assert.equal(point.toString("base64"), await page.evaluate(() => localStorage.getItem("test.key")));
    const jwk = { kty: "EC", crv: "P-256", x: point.subarray(1, 33).toString("base64url"), y: point.subarray(33).toString("base64url") };
    const [head, claims, signature] = token.split(".");
    const signer = { key: createPublicKey({ key: jwk, format: "jwk" }), dsaEncoding: "ieee-p1363" };
    assert(verify("sha256", Buffer.from(`${head}.${claims}`), signer, Buffer.from(signature, "base64url")));
    const { aud, exp } = JSON.parse(Buffer.from(claims, "base64url"));
    assert.equal(aud, origin);
    assert(exp > Date.now() / 1_000 && exp < Date.now() / 1_000 + 86_400);

    // The worker shows it, and a click leads to the session.
    const worker = page.context().serviceWorkers()[0];
    const debug = await page.context().newCDPSession(page);
    const registered = new Promise((done) => debug.on("ServiceWorker.workerRegistrationUpdated", ({ registrations }) => registrations[0] && done(registrations[0].registrationId)));
    await debug.send("ServiceWorker.enable");
    const arrived = { origin: GATEWAY, registrationId: await registered, data: JSON.stringify({ ...test, session: "garden" }) };
    const shown = () => worker.evaluate(async () => (await self.registration.getNotifications()).map((one) => `${one.title}: ${one.body}`));
    // Once a browser on a busy machine showed nothing. A second message with the same tag replaces the first.
    await eventually("it is shown", async () => {
      await debug.send("ServiceWorker.deliverPushMessage", arrived);
      const until = Date.now() + 5_000;
      while (Date.now() < until && (await shown()).length === 0) await new Promise((resolve) => setTimeout(resolve, 50));
      return (await shown()).join() === "MyClaw: Notifications arrive in this browser.";
    });
    await worker.evaluate(async () => {
      const [notification] = await self.registration.getNotifications();
      self.dispatchEvent(new NotificationEvent("notificationclick", { notification }));
    });
    await page.locator('h1[title="garden"]').waitFor();
    assert.deepEqual(await shown(), []);

    // A question, then the end of the turn.
    await ready(page);
    await say(page, "please write");
    await eventually("it says that it asks", () => got.length === 2);
    const question = opened(got[1].body);
    assert.equal(question.title, "MyClaw asks");
    assert.match(question.body, /write/);
    assert.equal(got[1].headers.urgency, "high");
    await page.getByRole("button", { name: "Allow once" }).click();
    await eventually("it says that it has answered", () => got.length === 3);
    assert.equal(opened(got[2].body).title, "MyClaw has answered");
    assert(!got.some(({ body }) => body.includes("write")), "the service can read it");

    // Only push services are written to.
    const own = { p256dh: keys.getPublicKey("base64url"), auth: auth.toString("base64url"), asks: true, ends: true };
    for (const endpoint of [`http://127.0.0.2:${STRANGER}/x`, "https://example.org/push", `${GATEWAY.replace("http", "https")}/api/status`]) {
      const [code, { error }] = await asked("/api/push", { ...own, endpoint });
      assert.equal(code, 400, endpoint);
      assert.match(error.message, /no push service that is known/);
    }
    assert.equal((await asked("/api/push", { ...own, auth: "short", endpoint: `${origin}/push/2` }))[0], 400);

    // What goes wrong is shown; a browser that has ended it is forgotten.
    await page.goto(`${GATEWAY}/#/devices`);
    status = 503;
    await part.getByRole("button", { name: "Send a test" }).click();
    await part.getByRole("alert").getByText("the push service answered 503").waitFor();
    await part.getByRole("listitem").getByText("the push service answered 503").waitFor();
    status = 410;
    await part.getByRole("button", { name: "Send a test" }).click();
    await eventually("it is forgotten", async () => (await asked("/api/push"))[1].browsers.length === 0);
    status = 201;
    await page.reload();
    await part.getByRole("button", { name: "Switch on in this browser" }).click();
    await part.getByRole("status").getByText("Notifications are on in this browser.").waitFor();
    await part.getByRole("button", { name: "Switch off in this browser" }).click();
    await part.getByRole("status").getByText("Notifications are off in this browser.").waitFor();
    assert.deepEqual((await asked("/api/push"))[1].browsers, []);
    // It is left on for the next start.
    await part.getByRole("button", { name: "Switch on in this browser" }).click();
    await part.getByRole("status").getByText("Notifications are on in this browser.").waitFor();
    assert(!JSON.stringify(await asked("/api/push")).includes(origin), "the address comes back");
    assert.deepEqual(page.foreign, []);
    service.close();
  },

  async agents() {
    const page = await open();
    await signIn(page, TOKEN, "/#/agents");
    const gardener = page.getByRole("article", { name: "gardener" });
    await gardener.getByText("The gardener").waitFor();
    await gardener.getByText("profile minimal").waitFor();
    for (const text of [
      "🌱",
      "patient and green",
      "anthropic/test-model",
      "anthropic/other",
      "every 30 minutes",
      "all but the main session (landlock, no network)",
      "gardener, main; at most 5 at a time",
      "1 of 2 can be used",
      "telegram, from 42",
    ]) {
      await gardener.getByText(text).waitFor();
    }
    // The list of tools opens by the keyboard.
    await gardener.locator("summary").focus();
    await page.keyboard.press("Enter");
    await gardener.getByText("session_status").waitFor();
    await page.getByRole("article", { name: "main", exact: true }).getByText("default", { exact: true }).waitFor();
    await check(page, "agents");
    await page.goto(`${GATEWAY}/#/skills`);
    const needy = page.getByRole("article", { name: "needy" });
    await needy.getByText("cannot be used").waitFor();
    await needy.getByText("no-such-program").waitFor();
    await page.getByRole("article", { name: "plain" }).getByText("ready").waitFor();
    await check(page, "skills");
    await page.getByLabel("Agent").selectOption("gardener");
    await eventually("the other agent's skills", async () => (await page.getByRole("article").count()) === 2);
    await page.goto(`${GATEWAY}/#/agents`);
    await gardener.getByRole("button", { name: "Open the main session" }).click();
    await ready(page);
    await say(page, "hello");
    await messages(page).getByText("Good morning.").waitFor();
    await page.goto(`${GATEWAY}/#/agents`);
    await gardener.getByText("1, last used").waitFor();
  },

  async logs() {
    const page = await open();
    await signIn(page, TOKEN, "/#/logs");
    const lines = page.getByRole("log", { name: "Log lines" }).locator(".log-line");
    await lines.filter({ hasText: "config loaded" }).first().waitFor();
    const before = await lines.count();
    await enter(page, "main");
    await say(page, "hello");
    await messages(page).getByText("Good morning.").waitFor();
    await page.goto(`${GATEWAY}/#/logs`);
    await eventually("the lines of the run", async () => (await lines.count()) > before);
    // It follows: a run that begins elsewhere shows without a reload.
    const other = await open();
    await signIn(other);
    await ready(other);
    const known = await lines.count();
    await say(other, "hello again");
    await eventually("the new lines", async () => (await lines.count()) > known);
    await page.getByRole("searchbox", { name: "Only lines with" }).fill("config loaded");
    await eventually("only lines with the text", async () => (await lines.allInnerTexts()).every((line) => line.includes("config loaded")));
    await check(page, "logs");
    await page.setViewportSize({ width: 375, height: 740 });
    const label = page.locator("label", { hasText: "Only lines with" });
    const height = await label.evaluate((one) => one.getBoundingClientRect().height - one.querySelector("input").offsetHeight);
    assert(height < 24, `the label is on one line, not ${height} px high`);
    await page.setViewportSize({ width: 1280, height: 800 });
    await page.getByRole("searchbox", { name: "Only lines with" }).fill("");
    await page.getByRole("radio", { name: "Errors" }).check();
    await page.getByText("No line of this kind.").waitFor();
    assert.equal((await page.locator("body").innerText()).includes(TOKEN), false);
  },

  async attacks() {
    const page = await open();
    // Links that would make the page talk to another server, or hand it the token.
    for (const at of [
      `/?gateway=ws://127.0.0.1:${STRANGER}/ws&gatewayUrl=ws://127.0.0.1:${STRANGER}`,
      `/#gatewayUrl=ws://127.0.0.1:${STRANGER}`,
      `/#/s/ws%3A%2F%2F127.0.0.1%3A${STRANGER}`,
      `/#/s/..%2F..%2F%2F127.0.0.1:${STRANGER}`,
      `/#token=${"x".repeat(64)}`,
    ]) {
      const fresh = await open();
      await signIn(fresh, TOKEN, at);
      await ready(fresh);
      assert.deepEqual(fresh.foreign, [], at);
      await fresh.context().close();
    }
    await signIn(page);
    await ready(page);
    await say(page, "please attack");
    await messages(page).getByText("The end.").waitFor();
    await idle(page);
    await page.waitForTimeout(500);
    const answer = messages(page).locator(".message.assistant");
    for (const one of await answer.locator("a").all()) {
      assert.match((await one.getAttribute("href")) ?? "http:", /^(https?|mailto):/);
      await one.click({ button: "middle", trial: true });
    }
    for (const bad of ["script", "iframe", "style", "form", "svg:not(.icon)", "link", "meta", "[style]", "[onerror]", ".markdown img", "#app"]) {
      assert.equal(await answer.locator(bad).count(), 0, bad);
    }
    await answer.getByText("script", { exact: true }).click();
    assert.equal(await page.evaluate(() => globalThis.hacked), undefined);
    await answer.getByText("[picture: remote]").waitFor();
    assert.deepEqual(page.foreign, []);
    await check(page, "attack");
    // The policy holds also where the page's own code would fail.
    const policy = (await page.request.get(GATEWAY)).headers()["content-security-policy"];
    assert.match(policy, /default-src 'none'/);
    await page.evaluate(async (port) => {
      const image = new Image();
      image.src = `http://127.0.0.1:${port}/x.png`;
      await fetch(`http://127.0.0.1:${port}/`).catch(() => {});
      try {
        const script = document.createElement("script");
        script.textContent = "globalThis.hacked = 8";
        document.body.append(script);
      } catch {
        // Trusted types refuse it.
      }
      try {
        document.body.insertAdjacentHTML("beforeend", "<img src=x onerror='globalThis.hacked = 9'>");
      } catch {
        // Trusted types refuse it.
      }
      try {
        new WebSocket(`ws://127.0.0.1:${port}/ws`);
      } catch {
        // Refused.
      }
    }, STRANGER);
    await page.waitForTimeout(500);
    assert.equal(await page.evaluate(() => globalThis.hacked), undefined);
    // A page of another origin cannot frame it.
    const framed = await open();
    await framed.setContent(`<iframe src="${GATEWAY}/"></iframe>`);
    await framed.waitForTimeout(500);
    assert.equal(await framed.frames()[1]?.getByLabel("Token").count().catch(() => 0), 0);
  },
};

try {
  await scenarios[process.argv[2]]();
  assert.deepEqual(problems, []);
  console.log(`${process.argv[2]}: passed`);
} catch (error) {
  console.error(error);
  for (const context of browser.contexts()) {
    for (const page of context.pages()) {
      await shot(page, `failed-${process.argv[2]}`).catch(() => {});
      console.error(page.url(), page.console_, await page.locator("body").innerText().catch(() => ""));
    }
  }
  process.exitCode = 1;
} finally {
  await browser.close();
  // What a scene that failed left listening does not keep the process.
  setTimeout(() => process.exit(), 1_000).unref();
}
