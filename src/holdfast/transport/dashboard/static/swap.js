// Puts fresh elements in the place of old ones, by their ids. Text never becomes markup here: the browser's own parser
// makes a document of the answer, in which nothing runs, and whole elements are moved.
const waiting = new Map();

const selects = (element) => {
  const selection = getSelection();
  return selection && !selection.isCollapsed && element.contains(selection.anchorNode);
};

const twin = (element, root) => {
  if (element.id) return root.querySelector(`#${CSS.escape(element.id)}`);
  const href = element.getAttribute?.("href");
  return href ? root.querySelector(`a[href="${CSS.escape(href)}"]`) : null;
};

const carryOver = (old, fresh) => {
  for (const details of old.querySelectorAll("details[id]")) {
    const next = twin(details, fresh);
    if (next) next.open = details.open;
  }
  for (const field of old.querySelectorAll("input[id], textarea[id], select[id]")) {
    const next = twin(field, fresh);
    if (!next) continue;
    if (field.type === "checkbox" || field.type === "radio") next.checked = field.checked;
    else next.value = field.value;
  }
};

const put = (old, fresh) => {
  carryOver(old, fresh);
  if (old.isEqualNode(fresh)) return; // nothing to see, and nobody is disturbed
  const active = old.contains(document.activeElement) ? document.activeElement : null;
  const caret = active && "selectionStart" in active ? [active.selectionStart, active.selectionEnd] : null;
  const scrolled = [...old.querySelectorAll("[id]")].filter((element) => element.scrollTop || element.scrollLeft);
  const [left, top] = [scrollX, scrollY];
  old.replaceWith(document.adoptNode(fresh));
  for (const element of scrolled) {
    const next = twin(element, fresh);
    if (next) next.scrollTo(element.scrollLeft, element.scrollTop);
  }
  const next = active && twin(active, fresh);
  if (next) {
    next.focus({ preventScroll: true });
    if (caret && caret[0] !== null) next.setSelectionRange(...caret);
  }
  scrollTo(left, top);
};

const settle = () => {
  for (const [id, fresh] of waiting) {
    const old = document.getElementById(id);
    if (old && selects(old)) continue; // not under somebody's hands
    waiting.delete(id);
    if (old) put(old, fresh);
  }
  document.dispatchEvent(new Event("swapped"));
};

export const swap = (text) => {
  const fresh = new DOMParser().parseFromString(text, "text/html");
  for (const element of fresh.querySelectorAll("[data-live][id]")) waiting.set(element.id, element);
  settle();
};

document.addEventListener("selectionchange", () => {
  if (waiting.size && getSelection()?.isCollapsed) settle();
});
