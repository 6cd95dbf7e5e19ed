// Elements, made once and then changed only where their text is another.

export function make<K extends keyof HTMLElementTagNameMap>(
  tag: K, attributes: Record<string, string> = {}, ...children: (Node | string)[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}
export function by(id: string): HTMLElement {
  const found = document.getElementById(id);
  if (!found) throw new Error(`no #${id}`);
  return found;
}
export function set(element: Element, text: string) {
  if (element.textContent !== text) element.textContent = text;
}
export function mark(element: HTMLElement, name: string, value: string) {
  if (element.dataset[name] !== value) element.dataset[name] = value;
}
