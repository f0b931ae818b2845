// Starts countdowns, keyboard shortcuts, live updates and copy buttons. The dashboard also works without scripts.
import { start as startCountdowns } from "./countdown.js";
import { start as startShortcuts } from "./shortcuts.js";
import { start as startLiveUpdates } from "./live.js";

startCountdowns();
startShortcuts();
if (document.getElementById("live-state")) startLiveUpdates();

for (const form of document.querySelectorAll("form[data-submit]")) form.submit();

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
