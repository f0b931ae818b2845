// Starts countdowns, keyboard shortcuts, live updates, selection and copy buttons. The dashboard also works without scripts.
import { start as startCountdowns } from "./countdown.js";
import { start as startShortcuts } from "./shortcuts.js";
import { start as startLiveUpdates } from "./live.js";

startCountdowns();
startShortcuts();
if (document.getElementById("live-state")) startLiveUpdates();

for (const form of document.querySelectorAll("form[data-submit]")) form.submit();

// A box in the head of a list that selects all its rows.
const showSelectAll = () => {
  for (const box of document.querySelectorAll("[data-select-all]")) box.hidden = false;
};
showSelectAll();
document.addEventListener("swapped", showSelectAll);
document.addEventListener("change", (event) => {
  const all = event.target.closest?.("[data-select-all]");
  if (!all) return;
  for (const box of all.closest("table").querySelectorAll("tbody .select input")) box.checked = all.checked;
});

const showCopyButtons = () => {
  if (!navigator.clipboard) return;
  for (const button of document.querySelectorAll("button[data-copy]")) button.hidden = false;
};
showCopyButtons();
document.addEventListener("swapped", showCopyButtons);
document.addEventListener("click", async (event) => {
  const button = event.target.closest?.("button[data-copy]");
  if (!button) return;
  await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
  button.textContent = "Copied";
  setTimeout(() => { button.textContent = "Copy"; }, 1500);
});
