// A run watched from its start to its verdict, by a visitor who never reloads the page.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Ground, browser, content, study, visit } from "./support.mjs";

let ground, chrome;
before(async () => {
  ground = new Ground();
  chrome = await browser();
});
after(async () => {
  await chrome?.close();
  await ground?.end();
});

test("a run is watched live from its first trial to its verdict", async () => {
  const server = await ground.serve();
  const page = await visit(chrome, server.link);
  await page.getByText("No runs on record yet").waitFor();
  ground.write("live.toml", study("Watched live", { rounds: 8, time: "600 ms", end: "each" }));
  const run = ground.begin("run", "live.toml");

  // The list tells of it by itself; it is opened without a mouse.
  const link = page.getByRole("link", { name: "Watched live", exact: true });
  await link.waitFor();
  await page.getByText("running", { exact: true }).waitFor();
  await link.focus();
  await page.keyboard.press("Enter");
  const live = page.getByRole("region", { name: "What is running now" });
  await live.waitFor();

  // What runs now, at which rate, in words and as a picture.
  await live.getByRole("img", { name: /^Throughput of this part: .+\/s now/ }).waitFor();
  const rates = new Set();
  while (rates.size < 3) {
    rates.add(await live.locator(".rate").innerText());
    await page.waitForTimeout(100);
  }
  await live.getByRole("progressbar", { name: /of at most 8/ }).waitFor();
  await page.getByText(/^No verdict yet/).first().waitFor();

  // What the reader has opened stays open, and the keyboard where it is, when news arrive.
  await page.getByText("The study, verbatim").click();
  const summary = page.getByText("The study, verbatim");
  await summary.focus();
  const trials = page.locator("#trials .part details > summary");
  const said = await trials.innerText();
  await page.waitForFunction(
    (said) => document.querySelector("#trials .part details > summary").innerText !== said, said);
  assert.equal(await summary.evaluate((node) => document.activeElement === node), true);
  assert.equal(await summary.evaluate((node) => node.parentElement.open), true);

  // The server goes and comes back: the page finds it again.
  const gone = new Promise((done) => server.child.once("exit", done));
  server.child.kill("SIGINT");
  await gone;
  await page.getByText("The line to the server is lost; trying again.").waitFor();
  await ground.serveAt(server.link);

  // The forest plot appears with the first verdict and follows the rounds.
  const plot = page.getByRole("img", { name: /^Ratios with their intervals/ });
  await plot.waitFor();
  const first = await plot.locator("desc").textContent();
  await page.waitForFunction(
    (first) => document.querySelector("#forest desc")?.textContent !== first, first);

  // The end is shown without anybody asking.
  await page.getByText("This run is finished.").waitFor();
  assert.equal(await page.locator("#live").count(), 0);
  const facts = await page.locator(".answer .facts").innerText();
  assert.match(facts, /ended: (decided|rounds)/);
  assert.notEqual(await page.locator(".verdict").innerText(), "");
  const ended = run.exitCode ?? (await new Promise((done) => run.once("exit", done)));
  assert.equal(ended, 0);
  await content(page);
});

test("a study is started and stopped by keyboard alone, where that is allowed", async () => {
  ground.write("studies/long.toml", study("Started from the page", { rounds: 50, time: "500 ms" }));
  const server = await ground.serve("--control", "--studies", "studies");
  const page = await visit(chrome, server.link);
  assert.ok(server.link.includes("token="));
  assert.ok(!page.url().includes("token"), "the token stays in no address");
  await page.getByRole("link", { name: "Start", exact: true }).press("Enter");
  await page.getByRole("button", { name: "Start long.toml" }).press("Enter");
  await page.getByRole("heading", { name: "run long.toml" }).waitFor();
  const link = page.getByRole("link", { name: /^Watch it/ });
  for (;;) {
    if (await link.count()) break;
    await page.waitForTimeout(200);
    await page.reload();
  }
  await link.press("Enter");
  await page.getByRole("region", { name: "What is running now" }).waitFor();
  await page.getByRole("button", { name: "Stop this run" }).press("Enter");
  await page.getByText("This run is interrupted.").waitFor();
  await page.getByRole("button", { name: "Continue this run" }).waitFor();
  await content(page);
});
