// Changes a plan on the gateway's page in Chromium. `crates/cli/tests/gateway/plans.rs` starts it:
//
//   PLAYWRIGHT=… AXE=… GATEWAY=http://127.0.0.1:PORT TOKEN=… node web-ui-plans.mjs

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const { PLAYWRIGHT, AXE, GATEWAY, TOKEN } = process.env;
const { chromium } = await import(pathToFileURL(join(PLAYWRIGHT, "index.mjs")).href);
const executablePath = ["/usr/bin/chromium", "/usr/bin/google-chrome", "/usr/bin/chromium-browser"].find(existsSync);
assert(executablePath, "there is no Chromium; scripts/install-third-party installs one");
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-dev-shm-usage"] });
try {
  const context = await browser.newContext({ viewport: { width: 375, height: 700 } });
  context.setDefaultTimeout(60_000);
  const page = await context.newPage();
  await page.goto(`${GATEWAY}/#/s/plans`);
  await page.getByLabel("Token").fill(TOKEN);
  await page.getByRole("button", { name: "Sign in" }).click();
  const message = page.getByRole("textbox", { name: "Message" });
  await message.waitFor();
  const done = page.getByRole("log", { name: "Messages" }).getByText("Done.", { exact: true });
  await message.fill("hello");
  await page.keyboard.press("Enter");
  await done.waitFor();
  const mode = page.getByRole("group", { name: "This chat" }).getByLabel("Permission mode", { exact: true });
  await mode.selectOption("plan");
  // It is set after what is said about it is drawn.
  while ((await mode.inputValue()) !== "plan") await page.waitForTimeout(100);
  await message.fill("plan it");
  await page.keyboard.press("Enter");
  const ask = page.getByRole("region", { name: "approval of update_plan" });
  const steps = ask.getByLabel("Steps of the plan, one in each line");
  await steps.waitFor();
  assert.equal(await steps.inputValue(), "Look\nChange");
  await ask.getByText("This cannot be allowed for good.").waitFor();
  const change = ask.getByRole("button", { name: "Approve with these steps" });
  await steps.fill(" ");
  assert(await change.isDisabled(), "a plan without steps is none");
  await page.evaluate(readFileSync(join(AXE, "axe.min.js"), "utf8"));
  const { violations } = await page.evaluate(() => axe.run());
  const bad = violations.filter((one) => ["serious", "critical"].includes(one.impact));
  assert.deepEqual(bad.map((one) => one.id), []);
  assert(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "the page is too wide");
  await steps.fill("Read it\nTest it");
  await change.click();
  await ask.waitFor({ state: "detached" });
  while ((await done.count()) < 2) await page.waitForTimeout(100);
  await page.getByText("Test it").first().waitFor();
} finally {
  await browser.close();
}
