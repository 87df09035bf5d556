// The page works without this. With it: search as you type, select a page, a menu that closes, a notice that goes.
"use strict";

const PAUSE = 250; // ms without a key before it is looked for
const BUSY = 2000; // ms between two looks at what is at work
const AGAIN = 30000; // ms between two looks at a conversation of which nothing is heard
const NOTICE = 8000; // ms that a notice is seen; one with something to press stays until it is closed
document.documentElement.classList.add("scripted");

const asking = {};

/** Puts the part of another page that `where` names in place of ours; whether that went well. */
async function swap(where, url, options = {}) {
  asking[where]?.abort();
  const mine = (asking[where] = new AbortController());
  const part = document.querySelector(where);
  part.setAttribute("aria-busy", "true");
  try {
    const answer = await fetch(url, { ...options, signal: mine.signal, headers: { Accept: "text/html" } });
    if (!answer.ok || answer.redirected) throw new Error(answer.status);
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const next = page.querySelector(where);
    if (!next) throw new Error("another page");
    const old = document.querySelector(where);
    if (old?.hasAttribute("data-merge")) merge(old, next);
    else old?.replaceWith(document.adoptNode(next));
    return true;
  } catch (error) {
    part.removeAttribute("aria-busy");
    return error.name === "AbortError";
  }
}

/** What is new in a list is added, what changed takes its place; what somebody is at work in stays. A reader hears the new
 * alone. */
function merge(list, next) {
  const known = new Map([...list.children].map((one) => [one.id, one]));
  const low = innerHeight + scrollY > document.body.scrollHeight - 300;
  let added = false;
  for (const one of [...next.children]) {
    const mine = known.get(one.id);
    known.delete(one.id);
    if (!mine) added = list.append(document.adoptNode(one)) ?? true;
    else if (!mine.contains(document.activeElement) && !mine.querySelector("details[open]") && mine.outerHTML !== one.outerHTML)
      mine.replaceWith(document.adoptNode(one));
  }
  for (const gone of known.values()) gone.remove();
  if (added && low) scrollTo(0, document.body.scrollHeight);
}

/** Figures that take longer than a list come after it. */
function figures() {
  const part = document.querySelector("[data-load]");
  if (part) swap(`#${part.id}`, part.dataset.load);
}

/** What is still at work is looked at until it is done. */
function again() {
  const part = document.querySelector("[data-again]");
  if (part) setTimeout(() => swap(`#${part.id}`, location.href).then(again), BUSY);
}

function address(form) {
  const fields = new URLSearchParams([...new FormData(form)].filter(([, value]) => value !== ""));
  return `${form.action}?${fields}`;
}

let waiting = 0;
async function look(form) {
  const url = address(form);
  if (!(await swap(form.dataset.live, url))) return form.submit();
  history.replaceState(null, "", url);
  // What the page around the list says of where we are.
  for (const one of document.querySelectorAll(".menu a[href*='/export'], .tools a[hreflang]")) {
    const path = new URL(one.href);
    const lang = path.searchParams.get("lang");
    if (path.pathname.split("/").length < 5 && !lang) continue; // all of it
    path.search = new URL(url).search;
    if (lang) path.searchParams.set("lang", lang);
    one.href = path;
  }
  needs();
  figures();
}

function needs() {
  for (const button of document.querySelectorAll("[data-needs]")) {
    button.disabled = !document.querySelector(`input[name="${button.dataset.needs}"]:checked`);
  }
}

document.addEventListener("input", (event) => {
  const form = event.target.form;
  if (form?.dataset.live) {
    clearTimeout(waiting);
    waiting = setTimeout(() => look(form), event.target.type === "search" ? PAUSE : 0);
  }
});
document.addEventListener("change", (event) => {
  const all = event.target.dataset.all;
  if (all) for (const one of document.querySelectorAll(`input[name="${all}"]`)) one.checked = event.target.checked;
  needs();
});
document.addEventListener("submit", async (event) => {
  const form = event.target;
  if (form.dataset.live) {
    event.preventDefault();
    clearTimeout(waiting);
    look(form);
  } else if ("once" in form.dataset) {
    // A second press of the same button sends nothing twice; this says so at once.
    setTimeout(() => { for (const button of form.querySelectorAll("button")) button.disabled = true; });
  } else if (form.dataset.swap) {
    event.preventDefault();
    const fields = new URLSearchParams(new FormData(form, event.submitter));
    if (!(await swap(form.dataset.swap, form.action, { method: "POST", body: fields }))) form.submit();
  }
});
window.addEventListener("pageshow", () => {
  // Whoever goes back after sending finds the words filled in again, though they stand above as sent.
  const box = document.querySelector("#composer textarea");
  const told = [...document.querySelectorAll("#lines .staff p")].pop();
  if (box && box.value.trim() === told?.textContent.trim()) box.value = "";
});
document.addEventListener("click", (event) => {
  if (event.target.closest(".toast a")) {
    event.preventDefault();
    event.target.closest(".toast").classList.add("gone");
  }
  for (const menu of document.querySelectorAll(".menu[open]")) if (!menu.contains(event.target)) menu.open = false;
});
document.addEventListener("keydown", (event) => {
  const open = event.key === "Escape" && document.querySelector(".menu[open]");
  if (open) {
    open.open = false;
    open.querySelector("summary").focus();
  } else if (event.key === "/" && !event.target.closest("input, textarea, select")) {
    const search = document.querySelector("input[type=search]");
    if (search) {
      event.preventDefault();
      search.focus();
    }
  }
});

const said = new URL(location);
for (const name of ["done", "n", "undo", "lang", "stats"]) said.searchParams.delete(name);
history.replaceState(null, "", said); // loaded again, it does not say again what was done
for (const notice of document.querySelectorAll(".toast:not(:has(button))")) setTimeout(() => notice.classList.add("gone"), NOTICE);
needs();
figures();
again();
const here = document.querySelector(".side [aria-current]");
// Not scrollIntoView: from where that led, Tab would go on, past the skip link.
if (here) here.parentElement.scrollLeft = here.offsetLeft - (here.parentElement.clientWidth - here.offsetWidth) / 2;
const feed = document.querySelector("[data-feed]");
if (feed) {
  const parts = [`#${feed.id}`, ...[...document.querySelectorAll("[data-merge]")].map((one) => `#${one.id}`)];
  let soon = 0;
  const renew = () => {
    clearTimeout(soon);
    soon = setTimeout(() => document.visibilityState === "visible" && parts.forEach((part) => swap(part, location.href)), 400);
  };
  new EventSource(feed.dataset.feed).addEventListener("changed", renew);
  document.addEventListener("visibilitychange", renew);
  setInterval(renew, AGAIN);
  if (parts.length > 1 && !location.hash) {
    history.scrollRestoration = "manual";
    scrollTo(0, document.body.scrollHeight);
  }
}
