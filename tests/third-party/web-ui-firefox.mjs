// Opens the gateway's page in Firefox: signs in, asks, and reads answers. `crates/cli/tests/gateway/web_ui.rs` starts it:
//
//   PLAYWRIGHT=… GATEWAY=http://127.0.0.1:PORT TOKEN=… node web-ui-firefox.mjs SCENARIO
//
// Playwright asks Firefox for more than the long-term release of Debian knows, so it is Puppeteer that drives it.

import assert from "node:assert/strict";
import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const { PLAYWRIGHT, GATEWAY, TOKEN, MYCLAW_SCREENSHOTS } = process.env;
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
  await page.goto(`${GATEWAY}/#/s/firefox`);
  await page.waitForSelector("aria/Token");
  await page.type("aria/Token", TOKEN);
  await page.keyboard.press("Enter");
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
  assert.equal(await page.evaluate(() => globalThis.hacked), undefined);
  assert.deepEqual(problems, []);
} catch (error) {
  const [, page] = await browser.pages();
  console.log(await page?.evaluate(() => document.body.innerText));
  throw error;
} finally {
  await browser.close();
}
