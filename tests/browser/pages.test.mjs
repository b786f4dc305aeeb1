// Every page as people meet it: by keyboard, by a screen reader, in the dark, on a phone, without a
// script; and the one that takes files.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import axe from "axe-core";
import { Ground, browser, content, study, visit } from "./support.mjs";

const FIO = new URL("../golden/fio/fio-3.33_two_jobs.json", import.meta.url).pathname;
const PHONE = { width: 360, height: 740 };

let ground, chrome, server, pages;
before(async () => {
  ground = new Ground();
  ground.write("quick.toml", study("A quick one, with a title that is long enough to need a second line on a phone", { rounds: 3, time: "20 ms" }));
  for (let run = 0; run < 3; run += 1) ground.stackrace("--quiet", "run", "quick.toml");
  ground.write("studies/quick.toml", study("Can be started", { rounds: 3, time: "20 ms" }));
  server = await ground.serve("--control", "--studies", "studies");
  chrome = await browser();
  const page = await visit(chrome, server.link);
  const run = await page.locator(".run h2 a").first().getAttribute("href");
  const history = await page.getByRole("link", { name: /^History of/ }).first().getAttribute("href");
  const id = run.split("/").at(-1);
  await content(page);
  pages = ["/", run, "/history", history, `/beside?a=${id}/0&b=${id}/1`, "/beside", "/import", "/start", "/nowhere"];
});
after(async () => {
  await chrome?.close();
  await ground?.end();
});

const at = (path) => new URL(path, server.link).href;
const missing = (page) => { page.troubles = page.troubles.filter((trouble) => !trouble.includes("404")); };

test("no page scrolls sideways on a phone, light or dark", async () => {
  for (const colorScheme of ["light", "dark"]) {
    const page = await visit(chrome, server.link, { viewport: PHONE, colorScheme });
    for (const path of pages) {
      await page.goto(at(path));
      const wide = await page.evaluate(() => document.scrollingElement.scrollWidth);
      assert.ok(wide <= PHONE.width, `${path} is ${wide} px wide`);
      const ground = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
      const [red] = ground.match(/\d+/g).map(Number);
      assert.equal(red < 128, colorScheme === "dark", `${path}: ${ground}`);
    }
    missing(page);
    await content(page);
  }
});

test("on paper nothing asks for a click, and no frame is torn by a page break", async () => {
  const page = await visit(chrome, server.link);
  await page.goto(at(pages[1]));
  const click = page.getByText("click it for its trial").first();
  assert.ok(await click.isVisible());
  await page.emulateMedia({ media: "print" });
  assert.equal(await click.isVisible(), false);
  const frame = await page.evaluate(() => getComputedStyle(document.querySelector(".hero")).borderTopWidth);
  assert.equal(frame, "0px");
  await content(page);
});

// Boxes of the texts of each chart, and of the charts within their frames.
const collisions = () => {
  const found = [];
  for (const chart of document.querySelectorAll(".chart svg")) {
    const texts = [...chart.querySelectorAll("text")].map((node) => [node.textContent.trim(), node.getBoundingClientRect()]);
    const frame = chart.parentElement.getBoundingClientRect();
    for (const [at, [words, box]] of texts.entries()) {
      if (box.width === 0) continue;
      if (box.left < frame.left - 1 || box.right > frame.right + 1) found.push(`${chart.id}: "${words}" leaves the chart`);
      for (const [others, other] of texts.slice(at + 1)) {
        const wide = Math.min(box.right, other.right) - Math.max(box.left, other.left);
        const high = Math.min(box.bottom, other.bottom) - Math.max(box.top, other.top);
        // A font's box is taller than its letters: a hair of it may overlap.
        if (wide > 1 && high > box.height / 5) found.push(`${chart.id}: "${words}" lies on "${others}"`);
      }
    }
  }
  return found;
};

test("no label of a chart lies on another or is cut, on a phone and on a desktop", async () => {
  for (const viewport of [{ width: 390, height: 800 }, { width: 1280, height: 900 }]) {
    const page = await visit(chrome, server.link, { viewport });
    let charts = 0;
    for (const path of pages) {
      await page.goto(at(path));
      await page.evaluate(() => document.querySelectorAll("details").forEach((node) => { node.open = true; }));
      const wide = await page.evaluate(() => document.scrollingElement.scrollWidth);
      assert.ok(wide <= viewport.width, `${path} is ${wide} px wide`);
      charts += await page.locator(".chart svg").count();
      assert.deepEqual(await page.evaluate(collisions), [], `${path} at ${viewport.width} px`);
    }
    assert.ok(charts > 6, `${charts} charts`);
    missing(page);
    await content(page);
  }
});

// What is wider than the frame it stands in, and either does not scroll or does not show that it does.
const cut = () => {
  const found = [];
  for (const node of document.querySelectorAll("body *:not(svg *)")) {
    const style = getComputedStyle(node);
    if (style.display === "inline" || node.clientWidth < 2 || node.scrollWidth <= node.clientWidth + 1) continue;
    const named = `${node.tagName} ${node.getAttribute("aria-label") ?? node.textContent.trim().slice(0, 60)}`;
    if (style.overflowX !== "auto") found.push(`${named} is cut`);
    // Two covers that move with the content, two shadows that stay.
    if (style.backgroundAttachment !== "local, local, scroll, scroll, scroll") found.push(`${named} has no shadow at its edges`);
    const hides = (cell) => !/transparent|rgba\(.*, 0(\.0\d+)?\)/.test(getComputedStyle(cell).backgroundColor);
    if ([...node.querySelectorAll("tr, th, td")].some(hides)) found.push(`${named} hides the shadow`);
  }
  return found;
};

test("a table fits, or scrolls and shows at its edge that it goes on", async () => {
  let scrolled = 0;
  for (const width of [390, 1000, 1280]) {
    const page = await visit(chrome, server.link, { viewport: { width, height: 900 } });
    for (const path of pages) {
      await page.goto(at(path));
      await page.evaluate(() => document.querySelectorAll("details").forEach((node) => { node.open = true; }));
      assert.deepEqual(await page.evaluate(cut), [], `${path} at ${width} px`);
      scrolled += await page.evaluate(() => [...document.querySelectorAll(".scroll")].filter((node) => node.scrollWidth > node.clientWidth).length);
      // The answer to whether the figures are to be believed is never beyond an edge.
      const audits = await page.locator(".scroll:has(.audit)").evaluateAll((all) => all.map((node) => node.scrollWidth - node.clientWidth));
      assert.ok(audits.every((more) => more <= 0), `an audit of ${path} goes on at ${width} px`);
    }
    missing(page);
    await content(page);
  }
  assert.ok(scrolled > 0, "no table was too wide: this test shows nothing");
});

test("a configuration has one colour on every page, and no two configurations share one", async () => {
  for (const colorScheme of ["light", "dark"]) {
    const page = await visit(chrome, server.link, { colorScheme });
    const colours = new Map();
    let places = 0;
    for (const path of pages) {
      await page.goto(at(path));
      const found = await page.evaluate(() => {
        const colour = (node) => getComputedStyle(node).getPropertyValue("--c").trim();
        const drawn = [...document.querySelectorAll("[data-configuration]")];
        const named = [...document.querySelectorAll(".swatch.s0, .swatch.s1, .swatch.s2")];
        return [
          ...drawn.map((node) => [node.dataset.configuration, colour(node)]),
          ...named.map((node) => [node.parentElement.textContent.trim(), colour(node)]),
        ];
      });
      for (const [name, colour] of found) {
        const size = name.match(/(4|64) KiB/)?.[0];
        if (!size) continue;
        places += 1;
        assert.equal(colours.get(size) ?? colour, colour, `${name} on ${path}`);
        colours.set(size, colour);
      }
    }
    assert.ok(places > 20, `${places} places`);
    assert.equal(new Set(colours.values()).size, 2);
    missing(page);
    await content(page);
  }
});

test("every control and graphic has a name, and contrast is enough", async () => {
  for (const colorScheme of ["light", "dark"]) {
    const page = await visit(chrome, server.link, { colorScheme });
    for (const path of pages) {
      await page.goto(at(path));
      await page.evaluate(() => document.querySelectorAll("details").forEach((node) => { node.open = true; }));
      await page.evaluate(axe.source + "; undefined");
      const { violations } = await page.evaluate(() => window.axe.run());
      const found = violations.map((v) => `${v.id}: ${v.help}: ${v.nodes.slice(0, 3).map((n) => n.html.slice(0, 200)).join(" | ")}`);
      assert.deepEqual(found, [], `${path}, ${colorScheme}`);
      // The browser's own names, not only what a rule looks for.
      for (const role of ["img", "button", "link", "textbox", "combobox", "table", "region"]) {
        for (const node of await page.getByRole(role).all()) {
          const named = await node.ariaSnapshot();
          if (role !== "table") assert.match(named, /"[^"]+"/, `${path}: a ${role} without a name`);
        }
      }
      assert.equal(await page.getByRole("heading", { level: 1 }).count(), 1, path);
    }
    missing(page);
    await content(page);
  }
});

test("everything is reached by keyboard, in the order of the page, and is seen to be", async () => {
  const page = await visit(chrome, server.link);
  for (const path of pages) {
    await page.goto(at(path));
    // Counted anew each time: a page that tells of something new may put in new nodes.
    await page.evaluate(() => {
      const reached = "a[href], button, summary, select, input:not([type=hidden]), textarea, [tabindex='0']";
      const next = (node) => node.tabIndex >= 0 && !(node.type === "radio" && !node.checked);
      window.reached = () => [...document.querySelectorAll(reached)].filter((node) => next(node) && node.checkVisibility());
    });
    const all = await page.evaluate(() => window.reached().length);
    for (let next = 0; next < all; next += 1) {
      await page.keyboard.press("Tab");
      const focus = await page.evaluate(() => {
        const node = document.activeElement;
        const style = getComputedStyle(node);
        const box = node.getBoundingClientRect();
        const within = box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth;
        return { html: node.outerHTML.slice(0, 300), order: window.reached().indexOf(node), outline: style.outlineStyle, width: parseFloat(style.outlineWidth), within };
      });
      assert.equal(focus.order, next, `${path}: Tab leads to ${focus.html} and not to the next one`);
      assert.notEqual(focus.outline, "none", `${path}: number ${next} does not show the focus`);
      assert.ok(focus.width >= 2 && focus.within, `${path}: number ${next} cannot be seen`);
    }
  }
  // Past the head of the page in one step.
  await page.goto(at(pages[1]));
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  assert.equal(await page.evaluate(() => document.activeElement.id), "main");
  missing(page);
  await content(page);
});

test("a page reads whole without a script", async () => {
  const page = await visit(chrome, server.link, { javaScriptEnabled: false });
  await page.getByRole("link", { name: /^A quick one/ }).first().click();
  await page.getByText("Method in plain words").first().waitFor();
  assert.ok((await page.locator("svg[role=img]").count()) > 0);
  await page.getByRole("link", { name: "Import" }).click();
  await page.getByLabel("Text as the tool printed it").fill(readFileSync(FIO, "utf8"));
  await page.getByRole("button", { name: "Read" }).click();
  await page.getByRole("heading", { name: "Imported from fio-3.33" }).waitFor();
  await content(page);
});

test("two results are put side by side by keyboard", async () => {
  const page = await visit(chrome, server.link);
  await page.goto(at("/beside"));
  await page.getByLabel("Beside it (B)").focus();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { level: 1, name: "64 KiB beside 4 KiB" }).waitFor();
  await content(page);
});

test("a file dropped onto the page is read, and kept only when asked", async () => {
  const page = await visit(chrome, server.link);
  const kept = async () => {
    await page.goto(at("/"));
    return page.locator(".run").count();
  };
  const before = await kept();
  await page.goto(at("/import"));
  await page.evaluate((text) => {
    const transfer = new DataTransfer();
    transfer.items.add(new File([text], "old.json"));
    // The same text again would be one result, not two: one figure of the second differs.
    const other = text.replaceAll("8106.234375", "8107.234375").replaceAll("130201.583496", "130202.583496");
    transfer.items.add(new File([other], "new.json"));
    const drop = new DragEvent("drop", { dataTransfer: transfer, bubbles: true, cancelable: true });
    document.getElementById("drop").dispatchEvent(drop);
  }, readFileSync(FIO, "utf8"));
  await page.getByRole("heading", { name: "Imported from fio-3.33" }).waitFor();
  await page.getByText("Not kept").waitFor();
  // The tables are folded.
  assert.match(await page.locator("#figures").textContent(), /old[\s\S]*new/);
  assert.equal(await kept(), before);

  await page.goto(at("/import"));
  await page.getByLabel("Drop files here, or choose them").setInputFiles(FIO);
  await page.getByText("fio-3.33_two_jobs.json").waitFor();
  await page.getByRole("button", { name: "Read" }).press("Enter");
  await page.getByRole("button", { name: "Keep this as a run" }).press("Enter");
  await page.getByText("This run is finished.").waitFor();
  assert.equal(await kept(), before + 1);

  await page.goto(at("/import"));
  await page.getByLabel("Text as the tool printed it").fill("what is this");
  await page.getByRole("button", { name: "Read" }).press("Enter");
  await page.getByRole("alert").getByText("pasted, line 1").waitFor();
  page.troubles = page.troubles.filter((trouble) => !trouble.includes("422"));
  await content(page);
});
