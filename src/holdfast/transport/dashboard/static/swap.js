// Replaces live elements with new versions, by their ids. No string becomes markup here: DOMParser makes a document in
// which no script runs, and whole elements are moved out of it.
const pending = new Map();

const hasSelection = (element) => {
  const selection = getSelection();
  return selection && !selection.isCollapsed && element.contains(selection.anchorNode);
};

const counterpart = (element, root) => {
  if (element.id) return root.querySelector(`#${CSS.escape(element.id)}`);
  const href = element.getAttribute?.("href");
  return href ? root.querySelector(`a[href="${CSS.escape(href)}"]`) : null;
};

const keepUserInput = (old, fresh) => {
  for (const details of old.querySelectorAll("details[id]")) {
    const next = counterpart(details, fresh);
    if (next) next.open = details.open;
  }
  for (const field of old.querySelectorAll("input[id], textarea[id], select[id]")) {
    const next = counterpart(field, fresh);
    if (!next) continue;
    if (field.type === "checkbox" || field.type === "radio") next.checked = field.checked;
    else next.value = field.value;
  }
};

const replace = (old, fresh) => {
  keepUserInput(old, fresh);
  if (old.isEqualNode(fresh)) return; // keep focus and selection when nothing has changed
  const active = old.contains(document.activeElement) ? document.activeElement : null;
  const caret = active && "selectionStart" in active ? [active.selectionStart, active.selectionEnd] : null;
  const scrolled = [...old.querySelectorAll("[id]")].filter((element) => element.scrollTop || element.scrollLeft);
  const [left, top] = [scrollX, scrollY];
  old.replaceWith(document.adoptNode(fresh));
  for (const element of scrolled) {
    const next = counterpart(element, fresh);
    if (next) next.scrollTo(element.scrollLeft, element.scrollTop);
  }
  const next = active && counterpart(active, fresh);
  if (next) {
    next.focus({ preventScroll: true });
    if (caret && caret[0] !== null) next.setSelectionRange(...caret);
  }
  scrollTo(left, top);
};

const replacePending = () => {
  for (const [id, fresh] of pending) {
    const old = document.getElementById(id);
    if (old && hasSelection(old)) continue; // replaced when the selection is cleared
    pending.delete(id);
    if (old) replace(old, fresh);
  }
  document.dispatchEvent(new Event("swapped"));
};

export const swap = (text) => {
  const fresh = new DOMParser().parseFromString(text, "text/html");
  for (const element of fresh.querySelectorAll("[data-live][id]")) pending.set(element.id, element);
  replacePending();
};

document.addEventListener("selectionchange", () => {
  if (pending.size && getSelection()?.isCollapsed) replacePending();
});
