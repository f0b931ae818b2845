// The dashboard works without any of this. With it, pages are alive.
import { start as count } from "./countdown.js";
import { start as listen } from "./keys.js";
import { start as watch } from "./live.js";

count();
listen();
if (document.getElementById("live-state")) watch();

for (const form of document.querySelectorAll("form[data-submit]")) form.submit();

const copyable = (root) => {
  if (!navigator.clipboard) return;
  for (const button of root.querySelectorAll("button[data-copy]")) button.hidden = false;
};
copyable(document);
document.addEventListener("swapped", () => copyable(document));
document.addEventListener("click", async (event) => {
  const button = event.target.closest?.("button[data-copy]");
  if (!button) return;
  await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
  button.textContent = "Copied";
  setTimeout(() => { button.textContent = "Copy"; }, 1500);
});
