// The web chat's page. What happens in the conversation comes over one stream, whoever speaks and in whichever window;
// saying something is a request of its own, which lives as long as somebody waits for its answer.
import MarkdownIt from "./vendor/markdown-it.mjs";

const { tenant, lang, texts } = document.body.dataset;
const say = JSON.parse(texts);
const embedded = document.body.classList.contains("embedded");
const $ = (id) => document.getElementById(id);
const log = $("log"), words = $("words"), send = $("send"), quick = $("quick"), state = $("state"), picture = $("picture");
const LARGEST = 10_000_000; // bytes of a picture

// ---- Markdown: no HTML of the writer's, links to the web, mail and telephones alone, pictures over https ------------
const markdown = new MarkdownIt({ html: false, linkify: false, breaks: true });
markdown.validateLink = (url) => /^(https?:|mailto:|tel:)/i.test(url.trim());
markdown.renderer.rules.link_open = (tokens, at, options, env, self) => {
  tokens[at].attrSet("target", "_blank");
  tokens[at].attrSet("rel", "noopener noreferrer nofollow");
  return self.renderToken(tokens, at, options);
};
const plainImage = markdown.renderer.rules.image;
markdown.renderer.rules.image = (tokens, at, options, env, self) => {
  if (!/^https:/i.test(tokens[at].attrGet("src"))) return markdown.utils.escapeHtml(tokens[at].content);
  tokens[at].attrSet("loading", "lazy");
  tokens[at].attrSet("referrerpolicy", "no-referrer");
  return plainImage(tokens, at, options, env, self);
};

// ---- who we are -----------------------------------------------------------------------------------------------------
const store = {
  get(name) { try { return localStorage.getItem(`cc:${tenant}:${name}`); } catch { return null; } },
  set(name, value) { try { localStorage.setItem(`cc:${tenant}:${name}`, value); } catch { /* a private window forgets */ } },
};
let token = store.get("token"), goodUntil = Number(store.get("until")), renewing = null;

async function credentials() {
  if (!token || Date.now() > goodUntil - 3_600_000) await (renewing ??= renew().finally(() => (renewing = null)));
  return { Authorization: `Bearer ${token}` };
}
async function renew() {
  const known = store.get("token");
  const answer = await fetch(`/web/${tenant}/visitor`, { method: "POST", headers: known ? { Authorization: `Bearer ${known}` } : {} });
  if (!answer.ok) throw new Refused(answer.status);
  const given = await answer.json();
  [token, goodUntil] = [given.token, Date.now() + given.expires_in * 1000];
  store.set("token", token);
  store.set("until", goodUntil);
}
class Refused extends Error {
  constructor(status) { super(String(status)); this.status = status; }
}
async function ask(path, options = {}, again = true) {
  const answer = await fetch(path, { ...options, headers: { ...(await credentials()), ...options.headers } });
  if (answer.status === 401 && again) { goodUntil = 0; return ask(path, options, false); }
  if (!answer.ok) throw new Refused(answer.status);
  return answer;
}

// ---- server-sent events over fetch: an EventSource can't say who asks ------------------------------------------------
async function* events(answer) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let buffer = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    buffer += value;
    for (let end; (end = buffer.indexOf("\n\n")) >= 0; buffer = buffer.slice(end + 2)) {
      const event = { kind: "message", id: "", data: null };
      for (const line of buffer.slice(0, end).split("\n")) {
        if (line.startsWith("event: ")) event.kind = line.slice(7);
        else if (line.startsWith("id: ")) event.id = line.slice(4);
        else if (line.startsWith("data: ")) event.data = JSON.parse(line.slice(6));
      }
      if (event.data) yield event;
    }
  }
}

// ---- what is shown --------------------------------------------------------------------------------------------------
const growing = new Map(); // request → { bubble, text }
const ended = new Set(); // requests that have their answer, or stand in the history
const pending = []; // own words that the conversation has not told of yet
let lastDay = "";

function near() { return log.scrollHeight - log.scrollTop - log.clientHeight < 120; }
function down() { log.scrollTop = log.scrollHeight; }
function add(className, before = null) {
  const stay = near(), bubble = document.createElement("div");
  bubble.className = `bubble ${className}`;
  bubble.dir = "auto";
  log.insertBefore(bubble, before);
  if (stay) down();
  return bubble;
}
function day(at) {
  const name = at.toLocaleDateString(lang, { weekday: "short", day: "numeric", month: "short" });
  if (name === lastDay) return;
  lastDay = name;
  const mark = document.createElement("span");
  mark.className = "day";
  mark.textContent = name;
  log.append(mark);
}
function fill(bubble, text, { media = [], staff = false } = {}) {
  const stay = near();
  bubble.innerHTML = markdown.render(text); // the renderer's own tags; everything else is escaped
  for (const one of media) {
    if (one.type === "image" && /^https:/i.test(one.url)) bubble.append(image(one.url, one.alt || ""));
    else if (one.type === "file" && /^https:/i.test(one.url)) bubble.append(link(one.url, one.name || one.url));
  }
  if (staff) {
    const who = document.createElement("span");
    who.className = "who";
    who.textContent = say.staff;
    bubble.prepend(who);
    bubble.classList.add("staff");
  }
  if (stay) down();
}
function image(url, alt) {
  const shown = document.createElement("img");
  Object.assign(shown, { src: url, alt, loading: "lazy", referrerPolicy: "no-referrer" });
  shown.addEventListener("load", () => near() && down());
  return shown;
}
function link(url, text) {
  const shown = document.createElement("a");
  Object.assign(shown, { href: url, textContent: text, target: "_blank", rel: "noopener noreferrer nofollow" });
  return shown;
}
function own(text, file = null) {
  const bubble = add("own");
  if (file) bubble.append(image(URL.createObjectURL(file), say.picture));
  bubble.append(text);
  down();
  return bubble;
}
function thinking(request) {
  const bubble = add("");
  bubble.innerHTML = '<span class="dots" aria-hidden="true"><i></i><i></i><i></i></span>';
  bubble.setAttribute("aria-busy", "true"); // a reader is told the answer when it is whole, not each piece
  growing.set(request, { bubble, text: "" });
  return growing.get(request);
}
function suggest(replies = []) {
  quick.replaceChildren(...replies.map((one) => {
    const button = document.createElement("button");
    Object.assign(button, { type: "button", textContent: one.label });
    button.addEventListener("click", () => speak(one.text));
    return button;
  }));
}
function tell(text) {
  state.textContent = text;
  state.hidden = !text;
}

function happened({ kind, data }) {
  const { request } = data;
  if (ended.has(request)) return;
  if (kind === "said") {
    const at = pending.findIndex((one) => one.text === data.text);
    if (at >= 0) pending.splice(at, 1);
    else { day(new Date()); own(data.text || `[${say.picture}]`); }
    suggest();
    if (!growing.has(request)) thinking(request);
  } else if (kind === "delta") {
    const answer = growing.get(request) ?? thinking(request);
    answer.text = data.replace ? data.text : answer.text + data.text;
    fill(answer.bubble, answer.text);
  } else if (kind === "done" || kind === "error") {
    const answer = growing.get(request) ?? thinking(request);
    growing.delete(request);
    if (request) ended.add(request);
    answer.bubble.removeAttribute("aria-busy");
    const text = kind === "done" ? data.text : explain(data.status);
    if (!text && !data.media?.length) answer.bubble.remove();
    else fill(answer.bubble, text, data);
    if (kind === "done") { suggest(data.quick_replies); unseen(); }
  } else if (kind === "told") {
    fill(add(""), data.text, { staff: true });
    unseen();
  }
}
function unseen() {
  if (embedded) parent.postMessage({ told: true }, "*");
}
function explain(status) {
  return say[{ 429: "slower", 413: "too_large", 504: "late", 404: "gone", 403: "gone" }[status]] ?? say.failed;
}

// ---- the conversation's stream --------------------------------------------------------------------------------------
let followed = null, lastId = "";

async function follow() {
  const mine = (followed = new AbortController());
  let wait = 500;
  while (!mine.signal.aborted) {
    try {
      const headers = lastId ? { "Last-Event-ID": lastId } : {};
      const answer = await ask("/chat/main/events", { headers, signal: mine.signal });
      tell("");
      wait = 500;
      for await (const event of events(answer)) {
        if (event.id) lastId = event.id;
        happened(event);
      }
    } catch (error) {
      if (mine.signal.aborted) return;
      if (error.status === 404) { tell(say.gone); return; }
    }
    if (mine.signal.aborted) return;
    if (wait > 500) tell(say.offline);
    await new Promise((next) => setTimeout(next, wait));
    wait = Math.min(wait * 2, 15_000);
  }
}

async function history() {
  const answer = await (await ask(`/web/${tenant}/history?lang=${lang}`)).json();
  log.replaceChildren();
  lastDay = "";
  growing.clear();
  lastId = answer.last_event_id;
  for (const one of answer.items) {
    if (one.request) ended.add(one.request);
    day(new Date(one.timestamp));
    if (one.role === "user") own(one.message);
    else fill(add(""), one.message, { staff: one.staff });
  }
  if (!answer.items.length) {
    if (answer.welcome) fill(add(""), answer.welcome);
    suggest(answer.suggestions);
  }
  down();
}

// ---- saying something -----------------------------------------------------------------------------------------------
async function speak(text, file = null) {
  text = text.trim();
  if (!text && !file) return;
  day(new Date());
  const bubble = own(text, file), waiting = { text };
  pending.push(waiting);
  suggest();
  try {
    const answer = file
      ? await ask(`/web/${tenant}/pictures?${new URLSearchParams({ caption: text })}`, { method: "POST", body: file, headers: { "Content-Type": file.type } })
      : await ask("/chat", {
          method: "POST",
          headers: { "Content-Type": "application/json" },
          body: JSON.stringify({ message: text, stream: true, conversation_id: "main" }),
        });
    tell("");
    for await (const _ of events(answer)); // shown by the stream; reading it says that somebody waits
  } catch (error) {
    const at = pending.indexOf(waiting);
    if (at < 0) return; // the conversation has it: the answer comes
    pending.splice(at, 1);
    bubble.classList.add("failed");
    tell(explain(error.status)); // nothing tries it again by itself: that is the visitor's
    if (!file && !words.value) { words.value = text; grow(); }
  }
}

function grow() {
  words.style.height = "auto";
  words.style.height = `${words.scrollHeight + 2}px`;
  send.disabled = !words.value.trim();
}
$("composer").addEventListener("submit", (event) => {
  event.preventDefault();
  const text = words.value;
  words.value = "";
  grow();
  speak(text);
  words.focus();
});
words.addEventListener("input", grow);
words.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    $("composer").requestSubmit();
  }
});
picture.addEventListener("change", () => {
  const [file] = picture.files;
  const caption = words.value;
  picture.value = "";
  if (!file) return;
  if (file.size > LARGEST) { tell(say.too_large); return; }
  words.value = "";
  grow();
  speak(caption, file);
});
addEventListener("keydown", (event) => {
  if (event.key === "Escape" && embedded) parent.postMessage({ close: true }, "*");
});
addEventListener("message", (event) => {
  if (event.source === parent && event.data?.from === "chat-chat" && event.data.open) { words.focus(); down(); }
});
// A window that nobody sees holds no connection: a browser has few of them for one site.
document.addEventListener("visibilitychange", () => {
  if (document.hidden && !embedded && growing.size === 0) followed?.abort();
  else if (!document.hidden && followed?.signal.aborted) follow();
});

grow();
try {
  await history();
  follow();
} catch (error) {
  tell(error.status ? explain(error.status) : say.offline);
  setTimeout(() => location.reload(), 15_000);
}
if (!embedded) words.focus();
