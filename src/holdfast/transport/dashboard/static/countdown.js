// Counts down time left, and up time since, from durations that the server rendered. Uses the browser's monotonic clock,
// so the browser's wall clock need not agree with the server's.
const firstSeen = new WeakMap();

const formatDuration = (milliseconds) => {
  let left = Math.max(0, Math.floor(milliseconds / 1000));
  const parts = [];
  for (const [size, unit] of [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]]) {
    const count = Math.floor(left / size);
    left -= count * size;
    if (count || parts.length) parts.push(`${count} ${unit}`);
    if (parts.length === 2) break;
  }
  return parts.filter((part) => !part.startsWith("0 ")).join(" ") || "0 s";
};

const elapsed = (element, now) => {
  if (!firstSeen.has(element)) firstSeen.set(element, now);
  return now - firstSeen.get(element);
};

// The same rule as renewal_health in held.py: a holder should renew every third of its TTL.
const renewalHealth = (left, ttl) => (left * 3 >= ttl * 2 - ttl / 20 ? "healthy" : left * 3 >= ttl ? "late" : "expiring");

const updateHealth = (bar) => {
  const health = renewalHealth(bar.value, bar.max);
  if (bar.classList.contains(health)) return;
  bar.className = `bar ${health}`;
  for (const state of bar.closest("tr, dl, .agent")?.querySelectorAll("[data-health]") ?? []) {
    state.className = `state ${health}`;
    state.textContent = health;
  }
};

const setText = (element, text) => {
  if (element.textContent !== text) element.textContent = text;
};

const tick = () => {
  const now = performance.now();
  for (const bar of document.querySelectorAll("progress[data-left]")) {
    bar.value = Math.max(0, bar.dataset.left - elapsed(bar, now));
    updateHealth(bar);
  }
  for (const element of document.querySelectorAll("[data-count]")) {
    setText(element, formatDuration(element.dataset.count - elapsed(element, now)));
  }
  for (const element of document.querySelectorAll("[data-ago]")) {
    setText(element, formatDuration(Number(element.dataset.ago) + elapsed(element, now)));
  }
};

export const start = () => {
  tick();
  setInterval(tick, 250);
  document.addEventListener("swapped", tick);
};
