// A store with runs, the real server over it, and a real browser in front of it.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { join } from "node:path";
import { chromium } from "playwright-core";

const PROGRAM = process.env.PROGRAM;
// What a page may take to come: machines that test are slow, and no time is asserted.
export const PATIENCE = Number(process.env.PATIENCE ?? 180_000);

/** A study in a directory of the ground; no root, no disk of its own. */
export function study(title, { rounds, time, end = "never" }) {
  return `
title = "${title}"
[factors]
block-size = ["4 KiB", "64 KiB"]
[[stack]]
dir = { path = "data" }
[[workload]]
name = "random write"
random = { mode = "write", size = "1 MiB", block-size = "{block-size}", access = "uniform", time = "${time}" }
[[workload]]
name = "small files"
files = { count = 20 }
[decide]
rounds-at-most = ${rounds}
at-most = "10 min"
until = "${end}"
`;
}

/** A directory on a disk with a store in it, and everything that runs there. */
export class Ground {
  constructor() {
    this.dir = mkdtempSync("/var/tmp/stackrace-browser-");
    this.children = [];
    mkdirSync(join(this.dir, "data"));
    mkdirSync(join(this.dir, "studies"));
  }

  write(name, text) {
    writeFileSync(join(this.dir, name), text);
    return name;
  }

  words(words) {
    return ["--store", join(this.dir, "store"), ...words];
  }

  /** Runs the program to its end. */
  stackrace(...words) {
    const ended = spawnSync(PROGRAM, this.words(words), { cwd: this.dir, encoding: "utf8" });
    assert.equal(ended.status, 0, `${words.join(" ")}\n${ended.stderr}`);
    return ended.stdout;
  }

  /** Starts the program. */
  begin(...words) {
    const child = spawn(PROGRAM, this.words(words), { cwd: this.dir, stdio: ["ignore", "pipe", "ignore"] });
    this.children.push(child);
    return child;
  }

  /** Starts the server; `link` is what it printed first. */
  async serve(...words) {
    const child = this.begin("serve", "--listen", "127.0.0.1:0", ...words);
    return { child, link: await line(child) };
  }

  /** Starts it again where it was. */
  async serveAt(link) {
    const child = this.begin("serve", "--listen", new URL(link).host);
    return { child, link: await line(child) };
  }

  async end() {
    for (const child of this.children) {
      if (child.exitCode === null && child.signalCode === null) {
        const gone = new Promise((done) => child.once("exit", done));
        child.kill("SIGKILL");
        await gone;
      }
    }
    spawnSync(PROGRAM, this.words(["clean"]));
    rmSync(this.dir, { recursive: true, force: true });
  }
}

async function line(child) {
  for await (const text of createInterface({ input: child.stdout })) return text;
  throw new Error("the server ended before it said where it is");
}

/** A browser with everything turned off that would ask the network for anything. */
export function browser() {
  return chromium.launch({
    executablePath: process.env.CHROMIUM,
    args: [
      "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
      "--disable-background-networking", "--disable-component-update", "--disable-sync",
    ],
  });
}

/** A page that keeps whatever it complains of and whatever it asks of others than the server. */
export async function visit(browser, link, options = {}) {
  const context = await browser.newContext(options);
  context.setDefaultTimeout(PATIENCE);
  const page = await context.newPage();
  page.troubles = [];
  page.on("pageerror", (error) => page.troubles.push(`error: ${error.message}`));
  page.on("console", (message) => {
    // A line that is lost on purpose is no trouble of the page's.
    const lost = /ERR_(CONNECTION|INCOMPLETE|EMPTY)/.test(message.text());
    if (message.type() === "error" && !lost) page.troubles.push(`console: ${message.text()}`);
  });
  const ours = new URL(link).host;
  page.on("request", (request) => {
    const address = new URL(request.url());
    if (address.protocol !== "data:" && address.host !== ours) page.troubles.push(`asked ${address}`);
  });
  await page.goto(link);
  return page;
}

/** Nothing was complained of, nothing asked of others. */
export async function content(page) {
  assert.deepEqual(page.troubles, []);
  await page.context().close();
}
