// The stream says that something changed; the page then fetches itself again and swaps what lives in it.
import { swap } from "./swap.js";

const QUIET_REFRESH = 30_000;
const HURRIED_REFRESH = 2_000;
const RETRY = [1000, 2000, 4000, 8000];

const REST = 3; // a server that takes its time is asked less often

let stream = null;
let retries = 0;
let fetching = false;
let again = false;
let awake = true;

const say = (state) => {
  const pill = document.getElementById("live-state");
  if (pill.dataset.state === state) return;
  pill.dataset.state = state;
  pill.textContent = state;
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
    await rest(REST * (performance.now() - began));
  } while (again);
  fetching = false;
};

const rest = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

const fetchOnce = async () => {
  const headers = { accept: "text/html", "x-fragments": "1" };
  if (awake) headers["x-awake"] = "1";
  awake = false;
  try {
    const answer = await fetch(location.href, { headers, cache: "no-store" });
    if (answer.status === 401) return location.reload();
    if (answer.ok) swap(await answer.text());
  } catch {
    say("reconnecting"); // the stream will tell when the server is back
  }
};

const open = () => {
  if (stream) return;
  stream = new EventSource("/ui/live");
  stream.addEventListener("open", () => {
    retries = 0;
    say("live");
  });
  stream.addEventListener("changed", refresh);
  stream.addEventListener("error", () => {
    say("reconnecting");
    if (stream?.readyState !== EventSource.CLOSED) return;
    close();
    setTimeout(() => document.hidden || open(), RETRY[Math.min(retries++, RETRY.length - 1)]);
  });
};

const close = () => {
  stream?.close();
  stream = null;
};

export const start = () => {
  // A hidden page needs no news, and a browser has few connections for one server.
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) {
      close();
      say("paused");
    } else {
      open();
    }
  });
  for (const sign of ["pointerdown", "keydown", "wheel"]) {
    document.addEventListener(sign, () => { awake = true; }, { passive: true });
  }
  setInterval(() => document.hidden || refresh(), QUIET_REFRESH);
  // What is on its way leaves no trace in the log, so nobody rings for it.
  setInterval(() => document.hidden || !document.querySelector("[data-hurry]") || refresh(), HURRIED_REFRESH);
  if (!document.hidden) open();
};
