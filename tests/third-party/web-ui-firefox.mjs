// Opens the gateway's page in Firefox: signs in, asks, and reads answers. `crates/cli/tests/gateway/web_ui.rs` starts it:
//
//   PLAYWRIGHT=… GATEWAY=http://127.0.0.1:PORT TOKEN=… node web-ui-firefox.mjs SCENARIO
//
// Playwright asks Firefox for more than the long-term release of Debian knows, so it is Puppeteer that drives it.

import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const { PLAYWRIGHT, AXE, GATEWAY, TOKEN, MYCLAW_SCREENSHOTS } = process.env;
const place = join(PLAYWRIGHT, "../puppeteer-core/lib/puppeteer/puppeteer-core.js");
const { default: puppeteer } = await import(pathToFileURL(place).href);
const executablePath = ["/usr/bin/firefox-esr", "/usr/bin/firefox", "/opt/firefox/firefox"].find(existsSync);
assert(executablePath, "there is no Firefox; scripts/install-third-party installs one");
const browser = await puppeteer.launch({ browser: "firefox", executablePath });

try {
  const page = await browser.newPage();
  page.setDefaultTimeout(60_000);
  const problems = [];
  page.on("pageerror", (error) => problems.push(error.message));
  page.on("request", (request) => {
    const url = new URL(request.url());
    if (/^(http|ws)/.test(url.protocol) && url.host !== new URL(GATEWAY).host) problems.push(request.url());
  });
  const shot = async (name) => {
    if (!MYCLAW_SCREENSHOTS) return;
    mkdirSync(MYCLAW_SCREENSHOTS, { recursive: true });
    await page.screenshot({ path: join(MYCLAW_SCREENSHOTS, `${name}.png`) });
  };
  const says = (text) => page.waitForFunction((text) => document.querySelector("[role=log]")?.textContent.includes(text), {}, text);
  const say = async (text) => {
    await page.waitForSelector("aria/Message");
    await page.type("aria/Message", text);
    await page.keyboard.press("Enter");
  };
  const signIn = async (at) => {
    await page.goto(`${GATEWAY}/#/${at}`);
    await page.waitForSelector("aria/Token");
    await page.type("aria/Token", TOKEN);
    await page.keyboard.press("Enter");
  };
  const tools = { page, says, say, shot, signIn };
  if (process.argv[2] === "firefox-walk") await walk(tools);
  else await look(tools);
  assert.equal(await page.evaluate(() => globalThis.hacked), undefined);
  assert.deepEqual(problems, []);
} catch (error) {
  const [, page] = await browser.pages();
  console.log(await page?.evaluate(() => document.body.innerText));
  throw error;
} finally {
  await browser.close();
}

/** Signs in, asks, and sees what loads later. */
async function look({ page, says, say, shot, signIn }) {
  await signIn("s/firefox");
  await say("hello");
  await says("Good morning.");
  await say("please run");
  await says("The tool is done.");

  // What loads later is drawn too.
  await say("please show formulas");
  await page.waitForFunction(() => document.querySelectorAll("math").length === 5);
  await shot("firefox");

  await say("please sketch");
  await page.waitForFunction(() => {
    const image = document.querySelector("figure.diagram img");
    return image?.complete && image.naturalWidth > 0;
  });
  await shot("firefox-diagram");

  // A document is shown in a frame, in which nothing runs.
  await say("please send pages");
  await page.locator("aria/Show page.html").click();
  await page.waitForSelector("iframe.document");
  const frame = await page.waitForFrame((one) => one.url().includes("/view/"));
  await frame.waitForSelector("h1");
  assert.equal(await frame.$eval("h1", (one) => one.textContent), "The report");
  await shot("firefox-document");

  // The same after the page is loaded again.
  await page.reload();
  await says("Good morning.");
}

/** What one does on the page in a day, once each. */
async function walk({ page, says, say, shot, signIn }) {
  const press = (name) => page.locator(`aria/${name}`).click();
  const count = (selector) => page.$$eval(selector, (all) => all.length);
  const until = (what, ...args) => page.waitForFunction(what, {}, ...args);
  const heading = (name) => page.waitForSelector(`h1[title="${name}"]`);
  const answers = (number) =>
    until(
      (number) => [...document.querySelectorAll(".message.assistant")].filter((one) => one.textContent.includes("Good morning.")).length === number && !document.querySelector("[aria-label=Stop]"),
      number,
    );
  const go = async (place, name) => {
    await page.goto(`${GATEWAY}/#/${place}`);
    await page.waitForSelector(`aria/${name}[role="region"]`);
  };
  const axe = readFileSync(join(AXE, "axe.min.js"), "utf8");
  /** In both themes, on a desk and on a phone. */
  const check = async (name) => {
    for (const theme of ["light", "dark"]) {
      for (const width of [1280, 375]) {
        await page.evaluate((theme) => (document.documentElement.dataset.theme = theme), theme);
        await page.setViewport({ width, height: 740 });
        // The colours change in a moment.
        await page.evaluate(() => Promise.allSettled(document.getAnimations().filter((one) => Number.isFinite(one.effect.getComputedTiming().endTime)).map((one) => one.finished)));
        const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
        assert(overflow <= 0, `${name}: ${overflow} pixels wider than ${width}`);
        await page.evaluate(axe);
        const found = await page.evaluate(async () => (await globalThis.axe.run()).violations.filter((one) => ["serious", "critical"].includes(one.impact)).map((one) => `${one.id}: ${one.nodes.map((node) => node.target)}`));
        assert.deepEqual(found, [], `${name}, ${theme}, ${width}`);
        await shot(`firefox-${name}-${theme}-${width}`);
      }
    }
    await page.setViewport({ width: 1280, height: 800 });
  };
  await signIn("s/walk");
  await page.waitForSelector("aria/Message");
  await says("You could ask, for example");
  await say("hello");
  await answers(1);
  await until(() => /anthropic\/claude\S* · [\d.K]+ tokens in, [\d.K]+ out · \$0\.\d+/.test(document.body.textContent));
  await press("Copy the answer");
  await until(() => [...document.querySelectorAll("[role=status]")].some((one) => one.textContent === "Copied"));
  await say("please show code");
  await page.waitForSelector("pre code .code-word");
  await page.locator("button.copy-code").click();
  await until(() => document.querySelector("button.copy-code").textContent === "Copied");

  // In other words, once more, and back.
  await until(() => document.querySelectorAll("[aria-label='Edit your message']").length === 2);
  await (await page.$$("aria/Edit your message"))[1].click();
  await page.waitForSelector("aria/Your message");
  await page.locator("aria/Your message").fill("hello beans");
  await press("Send in a branch");
  await heading("walk-2");
  await answers(2);
  await press("Previous branch");
  await heading("walk");
  await page.waitForSelector("pre code");
  await press("Next branch");
  await heading("walk-2");
  await answers(2);
  await (await page.$$("aria/Ask again"))[1].click();
  await heading("walk-3");
  await answers(2);
  await check("chat");

  // The mode, a question, a long change and the newest result.
  await page.select("aria/Permission mode", "ask");
  await say("please write much");
  await page.waitForSelector("aria/Allow once");
  await press("Allow once");
  await says("The tool is done.");
  await says("+line 10");
  assert(!(await page.$eval("[role=log]", (one) => one.innerText.includes("+line 60"))), "what is long is folded");
  await page.locator("::-p-text(Show all)").click();
  await until(() => document.querySelector("[role=log]").innerText.includes("+line 60"));
  await page.select("aria/Permission mode", "auto");
  await say("please run");
  await page.waitForSelector("aria/newest result");

  // Files up and down.
  const input = await page.$("input[type=file]");
  const place = join(process.env.TMPDIR ?? "/tmp", `walk-${process.pid}.txt`);
  writeFileSync(place, "brought along");
  await input.uploadFile(place);
  await page.waitForSelector(`aria/Remove walk-${process.pid}.txt`);
  await say("look");
  await says("I have 1 files.");
  unlinkSync(place);
  await say("please send drawings");
  await until(() => {
    const image = document.querySelector("img[alt='drawing.svg']");
    return image?.complete && image.naturalWidth > 0;
  });

  // A prompt is kept and inserted.
  await press("Prompts");
  await press("New prompt");
  await page.locator("dialog input[name=name]").fill("greet");
  await page.locator("dialog textarea").fill("hello $1");
  await press("Save");
  await page.waitForSelector("dialog li[aria-label=greet]");
  await check("prompts");
  await press("Insert");
  await page.locator("dialog input[name='$1']").fill("dear beans");
  await page.locator("dialog button[type=submit]").click();
  await until(() => document.querySelector("textarea[aria-label=Message]").value === "hello dear beans");

  // Folders, pins, the archive, several at once.
  await page.goto(`${GATEWAY}/#/s/one`);
  await heading("one");
  const menu = async (item) => {
    await press("Session menu");
    await page.locator(`.menu .items ::-p-text(${item})`).click();
  };
  await menu("Pin");
  await page.waitForSelector(".sessions-column .icon-pin");
  await menu("Move to a folder");
  await page.locator("dialog input").fill("Work");
  await page.locator("dialog button[type=submit]").click();
  await until(() => document.querySelector("details.folder")?.textContent.includes("hello from one"));
  await press("Choose");
  await press("Choose hello from two");
  await page.locator(".bulk ::-p-text(Archive)").click();
  await until(() => !document.querySelector(".sessions-column").textContent.includes("hello from two"));
  await page.locator("::-p-text(Show archived)").click();
  await until(() => document.querySelector(".sessions-column").textContent.includes("hello from two"));
  await press("Choose");
  await press("Choose hello from two");
  await page.locator(".bulk ::-p-text(Delete)").click();
  await page.locator("dialog button[type=submit]").click();
  await until(() => document.querySelector(".sessions-column").textContent.includes("No session is archived."));
  await page.locator("::-p-text(Show the others)").click();

  // What is remembered: added, why, corrected, forgotten.
  await go("memory", "Memory");
  await press("Remember");
  await page.locator("dialog textarea").fill("I am allergic to peanuts.");
  await page.locator("dialog button[type=submit]").click();
  await page.waitForSelector("article.card");
  await page.locator("article.card ::-p-text(Why?)").click();
  await page.waitForSelector("article.card blockquote");
  await page.locator("article.card ::-p-text(Correct)").click();
  await page.locator("dialog textarea").fill("I am allergic to nuts.");
  await page.locator("dialog button[type=submit]").click();
  await until(() => document.querySelector("article.card p").textContent.includes("allergic to nuts"));
  await check("memory");
  await page.locator("article.card ::-p-text(Forget)").click();
  await page.locator("dialog button[type=submit]").click();
  await until(() => ![...document.querySelectorAll("article.card")].some((one) => one.textContent.includes("allergic to nuts")));

  // What runs is seen and stopped from elsewhere.
  await page.goto(`${GATEWAY}/#/s/long`);
  await heading("long");
  await say("please take long");
  await says("word word");
  await go("running", "Running");
  await page.waitForSelector("article[aria-label=long]");
  await check("running");
  await page.locator("article[aria-label=long] ::-p-text(Stop)").click();
  await until(() => !document.querySelector("article[aria-label=long]"));

  // The files of the workspace, the config's ten things, and a reminder on the page where it was asked for.
  await go("files", "Files");
  await page.locator("table ::-p-text(much.md)").click();
  await until(() => document.querySelector("pre.file-text")?.textContent.includes("line 60"));
  await check("files");
  await go("config", "Config");
  await page.waitForSelector("aria/Your time zone");
  await check("config");
  await page.goto(`${GATEWAY}/#/s/main`);
  await heading("main");
  await say("please remind");
  await says("The tool is done.");
  const headers = { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" };
  const { jobs } = await (await fetch(`${GATEWAY}/api/cron`, { headers })).json();
  const { id } = jobs.find((one) => one.work.kind === "message");
  await fetch(`${GATEWAY}/api/cron`, { method: "POST", headers, body: JSON.stringify({ action: "run", id }) });
  await says("It is time to water.");
  assert.equal(await count("textarea[aria-label=Message]"), 1);
}
