// Takes a picture of the gateway's page after a short chat. scripts/make-pictures starts it:
//
//   TOKEN=… PLAYWRIGHT=… node picture-of-page.mjs http://127.0.0.1:PORT OUT.png

import { existsSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [gateway, out] = process.argv.slice(2);
const { chromium } = await import(pathToFileURL(join(process.env.PLAYWRIGHT, "index.mjs")).href);
const executablePath = ["/usr/bin/chromium", "/usr/bin/google-chrome", "/usr/bin/chromium-browser"].find(existsSync);
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-dev-shm-usage"] });
const page = await browser.newPage({ viewport: { width: 1120, height: 760 } });
page.setDefaultTimeout(60_000);
try {
  await page.goto(gateway);
  await page.getByLabel("Token").fill(process.env.TOKEN);
  await page.getByRole("button", { name: "Sign in" }).click();
  for (const [message, answer] of [
    ["read notes/rome.md", "Borghese"],
    ['write "book the Borghese gallery" to todo.txt', "Overwrote"],
  ]) {
    await page.getByRole("textbox", { name: "Message" }).fill(message);
    await page.keyboard.press("Enter");
    await page.getByRole("log", { name: "Messages" }).getByText(answer).last().waitFor();
    await page.getByRole("button", { name: "Stop" }).waitFor({ state: "detached" });
  }
  await page.evaluate(() => document.activeElement?.blur());
  await page.screenshot({ path: out, animations: "disabled" });
} catch (error) {
  console.error(await page.locator("body").innerText());
  throw error;
} finally {
  await browser.close();
}
