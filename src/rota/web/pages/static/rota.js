// Live updates, keys and small comforts. Every page is complete without this file.
const base = document.body.dataset.base.replace(/\/$/, "");
const main = document.querySelector("main");

// The viewer's timezone: the server writes the times, so it has to know.
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone || "";
const zoneNow = document.cookie.split("; ").find((part) => part.startsWith("rota_zone="))?.slice(10);
if (/^[\w+\-/]+$/.test(zone) && zoneNow !== zone) {
  const secure = location.protocol === "https:" ? "; Secure" : "";
  document.cookie = `rota_zone=${zone}; path=${base || "/"}; max-age=31536000; SameSite=Strict${secure}`;
  if (document.querySelector("main time") && document.cookie.includes(`rota_zone=${zone}`)) location.reload();
}

// A link that logs in once posts its form by itself: a GET changes nothing.
document.querySelector("form[data-submit]")?.requestSubmit();

// ---- keys: / searches, ? lists, g and a letter goes to a place; Escape leaves the search with what was typed
const TYPED = "input:not([type=checkbox]):not([type=radio]), textarea, select";
let afterG = 0;
addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest(TYPED)) {
    if (event.key === "Escape" && event.target.matches("[data-search]")) { event.preventDefault(); event.target.blur(); }
    return;
  }
  if (event.key === "/") {
    const field = document.querySelector("[data-search]");
    if (field) { event.preventDefault(); field.focus(); field.select(); }
    else if (document.querySelector("[data-go]") && !document.querySelector(`main form :is(${TYPED}):not([type=hidden])`)) {
      event.preventDefault();  // not from a form: what was typed would be lost
      location.href = `${base}/jobs#q`;
    }
  } else if (event.key === "?") {
    document.getElementById("keys")?.togglePopover?.();
  } else if (event.key === "g") {
    afterG = performance.now();
    return;
  } else if (afterG && performance.now() - afterG < 1500) {
    document.querySelector(`a[data-go="${CSS.escape(event.key)}"]`)?.click();
  }
  afterG = 0;
});

// ---- a dialog or the menu that the focus leaves is over: what lies behind it would have the focus unseen
for (const one of document.querySelectorAll("[popover]")) one.addEventListener("focusout", (event) => {
  const next = event.relatedTarget;  // its own opener closes it by itself
  if (next && !one.contains(next) && next.popoverTargetElement !== one && one.matches(":popover-open")) one.hidePopover();
});

// ---- ticking a row by its head, and the bar that shows how many
document.addEventListener("change", (event) => {
  const form = event.target.closest("form");
  if (form?.querySelector(".bulk")) form.classList.toggle("has-ticked", ticked(form));
});
const ticked = (where) => !!where.querySelector('input[type="checkbox"][name="job"]:checked');

// ---- a job's log as it is written: asked for twice a second, while the tab is looked at
const log = document.querySelector(".log[data-tail]");
async function tail() {
  if (!document.hidden && log.isConnected) {
    try {
      const glue = log.dataset.tail.includes("?") ? "&" : "?";
      const answer = await fetch(`${log.dataset.tail}${glue}after=${log.dataset.after}`, { credentials: "same-origin", cache: "no-store" });
      const fresh = new DOMParser().parseFromString(`<ol>${await answer.text()}</ol>`, "text/html");
      const end = fresh.querySelector("[data-last]");
      if (answer.ok && end) {
        const atEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 40;
        const lines = [...fresh.querySelectorAll("[data-number]")];
        if (lines.length) document.getElementById("log-empty")?.remove();
        for (const line of lines) log.append(document.adoptNode(line));
        while (log.children.length > 2000) log.firstElementChild.remove();
        log.dataset.after = end.dataset.last;
        if (atEnd && lines.length) log.scrollTop = log.scrollHeight;
        if (end.dataset.over !== undefined && !lines.length) return;
      }
    } catch { /* the next try says */ }
  }
  setTimeout(tail, 400);
}
if (log) { log.scrollTop = log.scrollHeight; tail(); }

// ---- live: one stream for all tabs of this browser; each page asks for its own HTML again and takes the parts
const kinds = new Set((main?.dataset.liveKinds || "").split(" ").filter(Boolean));
const light = document.getElementById("live");
const away = document.getElementById("away");
const EVERY = 5000;  // ms: what depends on time alone, such as a node that falls silent, is no event
let isAsking = false, isStale = false, hasNews = false, isOn = false, last = 0, shownAt = performance.now();

function isBusy() {
  const field = document.activeElement;
  const typing = field && field.matches(TYPED) && field.closest("main");
  return typing || ticked(document) || document.querySelector("main dialog:popover-open, main details[data-keep][open]") || getSelection()?.type === "Range";
}

// What has the focus in a part that is replaced: its HTML finds it again, or else what it does. A control that does
// something else now, such as Resume in place of Pause, does not get the focus.
const stops = (where) => [...(where?.querySelectorAll("a, button, summary, input, [tabindex]") ?? [])];
const deed = (one) => [one.tagName, one.closest("form")?.getAttribute("action"), ...["name", "value", "href", "popovertarget", "formaction"].map((name) => one.getAttribute(name))].join(" ");
function focusIn(part) {
  const one = document.activeElement, row = one.closest("[data-key]");
  if (!part.contains(one)) return null;
  return { html: one.outerHTML, deed: deed(one), key: row?.dataset.key };
}
function focusAgain(part, was) {
  const where = was.key === undefined ? part : part.querySelector(`[data-key="${CSS.escape(was.key)}"]`);
  const same = stops(where).find((one) => one.outerHTML === was.html) ?? stops(where).find((one) => deed(one) === was.deed);
  same?.focus({ preventScroll: true });
}

function replaceParts(fresh, isNews) {
  for (const part of document.querySelectorAll("[data-live]")) {
    const other = part.id && fresh.getElementById(part.id);
    if (!other || other.innerHTML === part.innerHTML) continue;
    const before = new Map([...part.querySelectorAll("[data-key]")].map((row) => [row.dataset.key, row.innerHTML]));
    const folds = new Map([...part.querySelectorAll("details[id]")].map((one) => [one.id, one.open]));
    const focused = focusIn(part);
    const scroll = [...part.querySelectorAll(".log")].map((one) => [one.id, one.scrollTop]);
    part.replaceChildren(...document.adoptNode(other).childNodes);
    for (const row of part.querySelectorAll("[data-key]")) if (isNews && before.get(row.dataset.key) !== row.innerHTML) row.classList.add("fresh");
    for (const one of part.querySelectorAll("details[id]")) if (folds.has(one.id)) one.open = folds.get(one.id);
    if (focused) focusAgain(part, focused);
    for (const [id, top] of scroll) { const one = document.getElementById(id); if (one) one.scrollTop = top; }
  }
  if (fresh.title) document.title = fresh.title;
  const now = fresh.querySelector("#live time");
  if (now && light) light.querySelector("time")?.replaceWith(document.adoptNode(now));
}

async function refresh() {
  if (document.hidden || isAsking || isBusy()) { isStale = true; return; }
  const wait = last + 1000 - performance.now();
  if (wait > 0) { isStale = true; setTimeout(() => isStale && refresh(), wait); return; }
  isAsking = true; isStale = false; last = performance.now();
  try {
    const answer = await fetch(location.href, { headers: { Accept: "text/html" }, credentials: "same-origin", cache: "no-store" });
    if (answer.status === 401) { location.reload(); return; }
    if (!answer.ok) throw new Error(answer.status);
    const text = await answer.text();
    if (isBusy()) isStale = true;
    else {
      replaceParts(new DOMParser().parseFromString(text, "text/html"), hasNews);
      hasNews = false; shownAt = performance.now(); shine();
    }
    if (away) away.hidden = true;
  } catch {
    if (away) away.hidden = false;
    isStale = true;
    setTimeout(() => isStale && refresh(), 2000);
  } finally { isAsking = false; }
}

// A page is live while the stream is open and what it shows is of the last seconds: one that waits for a form is not.
function shine() {
  if (!light) return;
  const isLive = isOn && performance.now() - shownAt < 3 * EVERY;
  light.classList.toggle("off", !isLive);
  light.firstChild.textContent = `${isLive ? light.dataset.on : light.dataset.off} `;
}

function heard(message) {
  if (message.open !== undefined) { isOn = message.open; shine(); if (!message.open) setTimeout(refresh, 500); }
  else if (message.kind === "away" || kinds.has(message.kind)) { hasNews = true; refresh(); }
}

if (light && kinds.size && "EventSource" in window) {
  const name = `rota-live:${base}:${document.body.dataset.user}`;
  const channel = "BroadcastChannel" in window ? new BroadcastChannel(name) : null;
  const say = (message) => { heard(message); channel?.postMessage(message); };
  let isOpen = false;
  const connect = () => {
    const stream = new EventSource(`${base}/events`);
    stream.onopen = () => { isOpen = true; say({ open: true }); };
    stream.onerror = () => {
      if (isOpen) say({ open: false });
      isOpen = false;
      if (stream.readyState === EventSource.CLOSED) { refresh(); setTimeout(connect, EVERY); }  // refused: the page asks by itself meanwhile
    };
    for (const kind of ["counts", "job", "change", "away"]) stream.addEventListener(kind, () => say({ kind }));
  };
  const listen = () => new Promise(() => {
    connect();
    channel?.addEventListener("message", (event) => { if (event.data.ask && isOpen) channel.postMessage({ open: true }); });
  });
  channel?.addEventListener("message", (event) => { if (!event.data.ask) heard(event.data); });
  channel?.postMessage({ ask: true });
  if (navigator.locks && channel) navigator.locks.request(name, listen);
  else listen();
  document.addEventListener("visibilitychange", () => { if (!document.hidden && isStale) refresh(); });
  setInterval(() => { if (isStale || performance.now() - last > EVERY) refresh(); shine(); }, 1000);
}

// ---- a form that shows what the server makes of it, while one types
const previewed = document.querySelector("form[data-preview]");
if (previewed) {
  let timer = 0, turn = 0;
  const look = async () => {
    const mine = ++turn, body = new URLSearchParams(new FormData(previewed));
    body.set("preview", "1");
    try {
      const answer = await fetch(previewed.action, { method: "POST", body, headers: { Accept: "text/html" }, credentials: "same-origin" });
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      if (mine !== turn) return;
      const put = (id) => {
        const fresh = page.getElementById(id);
        if (fresh) document.getElementById(id).replaceChildren(...document.adoptNode(fresh).childNodes);
      };
      put("preview");
      const call = document.getElementById("call"), of = page.getElementById("call")?.dataset.of; // of another task now
      if (of !== undefined && of !== call.dataset.of) { call.dataset.of = of; put("call"); }
    } catch { /* the button does the same */ }
  };
  previewed.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(look, 350); });
}
