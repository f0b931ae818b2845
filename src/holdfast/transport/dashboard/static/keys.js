// g and a letter go to a page, / to the filter, ? shows the keys.
const PATIENCE = 1200;
let going = -Infinity; // when g was pressed

const writes = (element) => element.matches?.("input, textarea, select, [contenteditable]");

export const start = () => {
  const help = document.getElementById("keys");
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || writes(event.target) || help?.open) return;
    if (performance.now() - going < PATIENCE) {
      going = -Infinity;
      const place = document.querySelector(`nav a[data-key="${CSS.escape(event.key)}"]`);
      if (place) {
        event.preventDefault();
        place.click();
      }
    } else if (event.key === "g") {
      going = performance.now();
    } else if (event.key === "/") {
      const filter = document.getElementById("filter");
      if (filter) {
        event.preventDefault();
        filter.focus();
        filter.select();
      }
    } else if (event.key === "?" && help) {
      help.showModal();
    }
  });
};
