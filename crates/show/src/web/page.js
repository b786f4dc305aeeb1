// The one script of the live pages: it puts in what has changed, and reads dropped files.
// Without it every page reads whole; it fetches from nowhere but the server it came from.
"use strict";

// Puts new content where a part of the page was, section by section. What a reader has opened stays
// open, and the keyboard stays where it was: both are found again by their order in their section.
function put(part, html) {
  const fresh = document.createElement("template");
  fresh.innerHTML = html;
  const old = sections(part);
  const now = sections(fresh.content);
  for (const [key, child] of old) if (!now.has(key)) child.remove();
  let last = null;
  for (const [key, child] of now) {
    const node = old.get(key) ?? child;
    if (node !== child && text(node) !== text(child)) {
      swap(node, () => {
        for (const { name, value } of child.attributes) node.setAttribute(name, value);
        node.replaceChildren(...child.childNodes);
      });
    }
    const next = last ? last.nextElementSibling : part.firstElementChild;
    if (next !== node) part.insertBefore(node, next);
    last = node;
  }
}

// The sections of a part by their ids; what has none, by its kind and number.
function sections(part) {
  const seen = {};
  const key = ({ id, tagName }) => id || `${tagName} ${seen[tagName] = (seen[tagName] ?? 0) + 1}`;
  return new Map([...part.children].map((child) => [key(child), child]));
}

// What a node says, but for what the reader opened.
function text(node) {
  return node.outerHTML.replaceAll('<details open="">', "<details>");
}

const REACHED = "a[href], button, summary, select, input, textarea, [tabindex]";

function swap(node, change) {
  const open = [...node.querySelectorAll("details")].map((details) => details.open);
  const reached = [...node.querySelectorAll(REACHED)].indexOf(document.activeElement);
  const place = reached < 0 ? null : document.activeElement.getAttribute("href");
  const scrolled = [...node.querySelectorAll(".scroll")].map((box) => box.scrollLeft);
  change(node);
  node.querySelectorAll("details").forEach((details, at) => { details.open = open[at] ?? false; });
  node.querySelectorAll(".scroll").forEach((box, at) => { box.scrollLeft = scrolled[at] ?? 0; });
  if (reached < 0) return;
  const again = [...node.querySelectorAll(REACHED)];
  const same = place && again.find((link) => link.getAttribute("href") === place);
  (same || again[reached])?.focus({ preventScroll: true });
}

function listen(address) {
  const status = document.getElementById("status");
  const say = (words) => { if (status && status.textContent !== words) status.textContent = words; };
  const events = new EventSource(address);
  for (const name of ["runs", "doing", "race", "record"]) {
    events.addEventListener(name, (event) => {
      const part = document.querySelector(`[data-part="${name}"]`);
      if (part) put(part, event.data);
    });
  }
  events.addEventListener("status", (event) => say(event.data));
  // The run has ended: what it did is gone, and there will be no more news.
  events.addEventListener("end", (event) => {
    events.close();
    put(document.querySelector('[data-part="stage"]'), event.data);
    document.getElementById("live")?.remove();
    say("The run has ended.");
  });
  // An answer that is no stream is final: the server has too many of them.
  events.addEventListener("error", () => say(events.readyState === EventSource.CLOSED
    ? "Too many pages are open: this one does not change. Load it again later."
    : "The line to the server is lost; trying again."));
  events.addEventListener("open", () => { if (status?.textContent.startsWith("The line")) say(""); });
}

// Dropped and chosen files become pairs of name and text in the form, as if they had been pasted.
function drops(form) {
  const drop = document.getElementById("drop");
  const files = document.getElementById("files");
  const chosen = document.getElementById("chosen");
  drop.hidden = false;
  const take = async (list) => {
    for (const file of list) {
      const name = Object.assign(document.createElement("input"), { type: "hidden", name: "name", value: file.name });
      const text = Object.assign(document.createElement("textarea"), { name: "text", hidden: true, value: await file.text() });
      const item = document.createElement("li");
      item.append(`${file.name}, ${file.size} bytes`, name, text);
      chosen.append(item);
    }
  };
  files.addEventListener("change", () => take(files.files));
  for (const kind of ["dragenter", "dragover"]) {
    document.addEventListener(kind, (event) => { event.preventDefault(); drop.classList.add("over"); });
  }
  document.addEventListener("dragleave", () => drop.classList.remove("over"));
  document.addEventListener("drop", async (event) => {
    event.preventDefault();
    drop.classList.remove("over");
    await take(event.dataTransfer.files);
    if (event.dataTransfer.files.length > 0) form.requestSubmit();
  });
}

const address = document.body.dataset.events;
if (address) listen(address);
const form = document.getElementById("import");
if (form) drops(form);
