// Puts a shop's chat on any site: <script src="https://…/web/widget.js" data-tenant="…" async></script>
// The chat itself runs in a frame of its own site: this page can't read it, and it can't read this page.
(() => {
  const script = document.currentScript;
  const home = new URL(script.src).origin;
  const thai = (script.dataset.lang || document.documentElement.lang || navigator.language).toLowerCase().startsWith("th");
  const say = thai ? { open: "แชตกับร้าน", close: "ปิดแชต" } : { open: "Chat with us", close: "Close the chat" };
  const colour = script.dataset.color || "#0b6e4f";
  const query = new URLSearchParams({ tenant: script.dataset.tenant || "", embed: "1", lang: thai ? "th" : "en" });
  let frame, loaded = false, unread = 0;

  const host = document.createElement("div");
  const root = host.attachShadow({ mode: "open" });
  const button = document.createElement("button");
  const badge = document.createElement("span");
  const set = (element, style) => Object.assign(element.style, style);
  set(host, { all: "initial", position: "fixed", right: "16px", bottom: "16px", zIndex: 2147483000, font: "16px system-ui, sans-serif" });
  set(button, {
    width: "60px", height: "60px", borderRadius: "50%", border: "0", background: colour, color: "#fff", cursor: "pointer",
    boxShadow: "0 4px 16px rgb(0 0 0 / .3)", position: "relative", zIndex: 1, font: "26px/1 system-ui, sans-serif",
  });
  set(badge, {
    position: "absolute", top: "-4px", right: "-4px", minWidth: "22px", padding: "3px 5px", borderRadius: "11px", boxSizing: "border-box",
    background: "#c62828", color: "#fff", font: "600 13px/16px system-ui, sans-serif", display: "none",
  });
  button.type = "button";
  root.append(button);

  const isOpen = () => Boolean(frame) && frame.style.display !== "none";
  function show() {
    button.textContent = isOpen() ? "×" : "💬";
    button.setAttribute("aria-label", isOpen() ? say.close : say.open);
    button.setAttribute("aria-expanded", String(isOpen()));
    badge.textContent = unread > 9 ? "9+" : String(unread);
    badge.style.display = unread && !isOpen() ? "block" : "none";
    button.append(badge);
  }
  function place() {
    const phone = innerWidth < 520;
    set(frame, phone
      ? { inset: "0", width: "100%", height: "100%", borderRadius: "0" }
      : { inset: "auto 16px 88px auto", width: "400px", height: "min(640px, calc(100vh - 120px))", borderRadius: "16px" });
    set(host, phone && isOpen() ? { top: "4px", bottom: "auto", right: "4px" } : { top: "auto", bottom: "16px", right: "16px" });
    set(button, phone && isOpen() ? { width: "44px", height: "44px", boxShadow: "none" } : { width: "60px", height: "60px" });
  }
  function tell() {
    if (loaded) frame.contentWindow.postMessage({ from: "chat-chat", open: isOpen() }, home);
  }
  function toggle(open) {
    if (!frame) {
      frame = document.createElement("iframe");
      frame.title = say.open;
      frame.allow = "clipboard-write";
      frame.addEventListener("load", () => { loaded = true; tell(); });
      frame.src = `${home}/?${query}`;
      set(frame, { position: "fixed", border: "0", boxShadow: "0 8px 40px rgb(0 0 0 / .35)", background: "Canvas", display: "none" });
      root.prepend(frame);
    }
    frame.style.display = open ? "block" : "none";
    if (open) unread = 0;
    place();
    show();
    tell();
    (open ? frame : button).focus();
  }
  button.addEventListener("click", () => toggle(!isOpen()));
  addEventListener("resize", () => frame && place());
  addEventListener("message", (event) => {
    if (!frame || event.source !== frame.contentWindow || event.origin !== home) return;
    if (event.data?.close) toggle(false);
    if (event.data?.told && !isOpen()) { unread += 1; show(); }
  });
  show();
  const attach = () => document.body.append(host);
  if (document.body) attach(); else addEventListener("DOMContentLoaded", attach);
})();
