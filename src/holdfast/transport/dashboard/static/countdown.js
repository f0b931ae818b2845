// Times left and times since tick here, from spans that the server told: no clock but the browser's own steady one.
const seen = new WeakMap();

const words = (milliseconds) => {
  let left = Math.max(0, Math.floor(milliseconds / 1000));
  const told = [];
  for (const [size, unit] of [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]]) {
    const many = Math.floor(left / size);
    left -= many * size;
    if (many || told.length) told.push(`${many} ${unit}`);
    if (told.length === 2) break;
  }
  return told.filter((part) => !part.startsWith("0 ")).join(" ") || "0 s";
};

const since = (element, moment) => {
  if (!seen.has(element)) seen.set(element, moment);
  return moment - seen.get(element);
};

// As the server says it: a holder should be heard of every third of its time.
const pulse = (left, ttl) => (left * 3 >= ttl * 2 - ttl / 20 ? "lively" : left * 3 >= ttl ? "quiet" : "fading");

const age = (bar) => {
  const word = pulse(bar.value, bar.max);
  if (bar.classList.contains(word)) return;
  bar.className = `bar ${word}`;
  for (const state of bar.closest("tr, dl, .agent")?.querySelectorAll("[data-pulse]") ?? []) {
    state.className = `state ${word}`;
    state.textContent = word;
  }
};

const tick = () => {
  const moment = performance.now();
  for (const bar of document.querySelectorAll("progress[data-left]")) {
    bar.value = Math.max(0, bar.dataset.left - since(bar, moment));
    age(bar);
  }
  for (const text of document.querySelectorAll("[data-count]")) {
    const told = words(text.dataset.count - since(text, moment));
    if (text.textContent !== told) text.textContent = told;
  }
  for (const text of document.querySelectorAll("[data-ago]")) {
    const told = words(Number(text.dataset.ago) + since(text, moment));
    if (text.textContent !== told) text.textContent = told;
  }
};

export const start = () => {
  tick();
  setInterval(tick, 250);
  document.addEventListener("swapped", tick);
};
