// SPDX-License-Identifier: BSD-3-Clause
// The HTML report in a real browser: node report.test.js REPORT.html LARGE.html [DIRECTORY for pictures]
"use strict";
const assert = require("node:assert");
const path = require("node:path");
const { chromium } = require("playwright-core");

const [report, large, pictures] = process.argv.slice(2);
const executablePath = process.env.PERDURE_CHROMIUM || "/usr/bin/chromium";
const address = (file) => "file://" + path.resolve(file);
const tests = [];
const test = (name, run) => tests.push({ name, run });

async function open(browser, file, options) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, offline: true, ...options });
  const page = await context.newPage();
  const wrong = [];
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && wrong.push(message.text()));
  page.on("pageerror", (error) => wrong.push(String(error)));
  page.on("request", (request) => request.url().startsWith("file:") || request.url().startsWith("data:") || wrong.push("asks for " + request.url()));
  await page.goto(address(file));
  return { page, wrong, context };
}
const shown = (page) => page.locator("#count").textContent();
const heading = (page) => page.locator("#heading").textContent();

test("shows the first finding, with its source, timeline, fix and command", async (browser) => {
  const { page, wrong } = await open(browser, report);
  assert.match(await page.locator("#title").textContent(), /perdure check/);
  assert.match(await heading(page), /recovery aborts/);
  const marked = await page.locator(".source tr.marked").allTextContents();
  assert(marked.some((line) => line.includes("sum = 77")), marked.join("\n"));
  assert.equal(await page.locator(".timeline svg").count(), 1);
  assert(await page.locator(".timeline svg circle").count() >= 1);
  assert.match(await page.locator(".timeline svg").textContent(), /crash/);
  assert.match(await page.locator("#fix").textContent(), /fence/);
  assert.match(await page.locator("#again").textContent(), /^perdure replay --from /);
  assert.match(await page.locator("#detail").textContent(), /Assertion/);
  if (pictures) await page.screenshot({ path: path.join(pictures, "report.png") });
  assert.deepEqual(wrong, []);
});

test("filters by kind, severity, file and text, and says how many are left", async (browser) => {
  const { page, wrong } = await open(browser, report);
  const all = Number((await shown(page)).split(" ")[0]);
  await page.selectOption("#severity", "performance");
  const few = Number((await shown(page)).split(" ")[0]);
  assert(few > 0 && few < all, few + " of " + all);
  assert.match(await heading(page), /transient-data/);
  await page.selectOption("#severity", "");
  await page.fill("#text", "no such finding");
  assert.equal((await shown(page)).split(" ")[0], "0");
  assert.match(await page.locator("#detail").textContent(), /Nothing fits/);
  await page.fill("#text", "");
  await page.locator("#overview summary").click();
  await page.locator("#columns button", { hasText: "transient-data" }).click();
  assert.equal(await page.inputValue("#kind"), "transient-data");
  assert.equal((await shown(page)).split(" ")[0], String(few));
  assert.deepEqual(wrong, []);
});

test("is usable with the keyboard, and a link leads to a finding", async (browser) => {
  const { page, wrong } = await open(browser, report);
  await page.locator("#list").focus();
  const first = await heading(page);
  await page.keyboard.press("ArrowDown");
  assert.notEqual(await heading(page), first);
  assert.equal(await page.locator('.row[aria-selected="true"]').count(), 1);
  assert.equal(await page.getAttribute("#list", "aria-activedescendant"), await page.locator('.row[aria-selected="true"]').getAttribute("id"));
  const id = (await page.evaluate(() => location.hash)).slice(1);
  const again = await page.context().newPage();
  await again.goto(address(report) + "#" + id);
  assert.equal(await heading(again), await heading(page));
  await page.keyboard.press("Home");
  assert.equal(await heading(page), first);
  assert.deepEqual(wrong, []);
});

test("has a dark form, and prints without the list", async (browser) => {
  const { page, wrong } = await open(browser, report, { colorScheme: "dark" });
  assert.equal(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), "rgb(22, 24, 27)");
  if (pictures) await page.screenshot({ path: path.join(pictures, "report-dark.png") });
  await page.emulateMedia({ media: "print" });
  assert.equal(await page.locator("#list").isVisible(), false);
  assert.equal(await page.locator("#detail").isVisible(), true);
  assert.deepEqual(wrong, []);
});

test("scrolls through 5,000 findings without having them all in the page", async (browser) => {
  const { page, wrong } = await open(browser, large);
  assert.match(await shown(page), /^5000 of 5000/);
  assert(await page.locator(".row").count() < 60);
  const slowest = await page.evaluate(async () => {
    const list = document.getElementById("list");
    let worst = 0;
    for (let i = 0; i < 40; i++) {
      const before = performance.now();
      list.scrollTop = (list.scrollHeight / 40) * i;
      await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
      worst = Math.max(worst, performance.now() - before);
    }
    return worst;
  });
  assert(slowest < 250, "a step took " + slowest + " ms");
  await page.locator("#list").focus();
  await page.keyboard.press("End");
  assert.match(await page.locator("#detail").textContent(), /number 4999/);
  const before = Date.now();
  await page.fill("#text", "p4321");
  assert.match(await shown(page), /^1 of 5000/);
  assert(Date.now() - before < 1500);
  assert.deepEqual(wrong, []);
});

(async () => {
  const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
  let failed = 0;
  for (const { name, run } of tests) {
    try {
      await run(browser);
      console.log("ok   " + name);
    } catch (error) {
      failed++;
      console.log("FAIL " + name + "\n" + (error.stack || error));
    }
  }
  await browser.close();
  process.exit(failed ? 1 : 0);
})();
