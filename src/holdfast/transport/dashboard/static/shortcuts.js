// Keyboard shortcuts: g and a letter open a page, / focuses the filter, ? shows the shortcuts.
const SEQUENCE_MILLISECONDS = 1200;
let pressedG = -Infinity; // when g was pressed

const isEditable = (element) => element.matches?.("input, textarea, select, [contenteditable]");

export const start = () => {
  const help = document.getElementById("shortcuts");
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || isEditable(event.target) || help?.open) return;
    if (performance.now() - pressedG < SEQUENCE_MILLISECONDS) {
      pressedG = -Infinity;
      const link = document.querySelector(`nav a[data-key="${CSS.escape(event.key)}"]`);
      if (link) {
        event.preventDefault();
        link.click();
      }
    } else if (event.key === "g") {
      pressedG = performance.now();
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
