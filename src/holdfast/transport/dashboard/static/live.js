// Live updates: the event stream says that something changed; the page then fetches itself and swaps its live elements.
import { swap } from "./swap.js";

const REFRESH_MILLISECONDS = 30_000;
const POLL_MILLISECONDS = 2_000;
const RETRY_MILLISECONDS = [1000, 2000, 4000, 8000];
const PAUSE_FACTOR = 3; // pause after a fetch for this many times its duration, so a slow server is asked less often

let stream = null;
let retries = 0;
let fetching = false;
let again = false;
let isUserActive = true;

const showState = (state) => {
  const element = document.getElementById("live-state");
  if (element.dataset.state === state) return;
  element.dataset.state = state;
  element.textContent = state;
};

const refresh = async () => {
  if (fetching) {
    again = true;
    return;
  }
  fetching = true;
  do {
    again = false;
    const began = performance.now();
    await fetchOnce();
    await sleep(PAUSE_FACTOR * (performance.now() - began));
  } while (again);
  fetching = false;
};

const sleep = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

const fetchOnce = async () => {
  const headers = { accept: "text/html", "x-fragments": "1" };
  if (isUserActive) headers["x-awake"] = "1";
  isUserActive = false;
  try {
    const response = await fetch(location.href, { headers, cache: "no-store" });
    if (response.status === 401) return location.reload();
    if (response.ok) swap(await response.text());
  } catch {
    showState("reconnecting"); // the stream reconnects by itself when the server is back
  }
};

const open = () => {
  if (stream) return;
  stream = new EventSource("/ui/live");
  stream.addEventListener("open", () => {
    retries = 0;
    showState("live");
  });
  stream.addEventListener("changed", refresh);
  stream.addEventListener("error", () => {
    showState("reconnecting");
    if (stream?.readyState !== EventSource.CLOSED) return;
    close();
    setTimeout(() => document.hidden || open(), RETRY_MILLISECONDS[Math.min(retries++, RETRY_MILLISECONDS.length - 1)]);
  });
};

const close = () => {
  stream?.close();
  stream = null;
};

export const start = () => {
  // A hidden page needs no updates, and a browser opens only a few connections to one server.
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) {
      close();
      showState("paused");
    } else {
      open();
    }
  });
  for (const type of ["pointerdown", "keydown", "wheel"]) {
    document.addEventListener(type, () => { isUserActive = true; }, { passive: true });
  }
  setInterval(() => document.hidden || refresh(), REFRESH_MILLISECONDS);
  // Pending deliveries write no event when they are sent, so pages that show them poll.
  setInterval(() => document.hidden || !document.querySelector("[data-poll]") || refresh(), POLL_MILLISECONDS);
  if (!document.hidden) open();
};
