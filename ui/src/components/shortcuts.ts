// What a key means on a card. Letters and digits mean nothing in a field; Tab and the arrows are never remapped.

export type Wish = "submit" | "skip" | "leave" | number | null;

/** Where a key writes instead of commanding. */
export function isField(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target instanceof HTMLInputElement) return !["radio", "checkbox", "button", "submit"].includes(target.type);
  return target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement || target.isContentEditable;
}

export function shortcut(event: KeyboardEvent, risk: boolean): Wish {
  // A key that composes a character, such as Enter in a Japanese input method, commands nothing.
  if (event.isComposing || event.keyCode === 229 || event.altKey) return null;
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) return risk ? null : "submit";
  if (event.ctrlKey || event.metaKey) return null;
  if (isField(event.target)) return event.key === "Escape" ? "leave" : null;
  if (risk || event.repeat) return null;
  if (event.key === "s") return "skip";
  return /^[1-9]$/.test(event.key) ? Number(event.key) : null;
}

/** The choice with that number: of the question in focus, else of the card's only one. */
export function digit(target: EventTarget | null, card: HTMLElement | null, number: number): HTMLInputElement | null {
  const within = target instanceof Element ? target.closest("[data-selects]") : null;
  const all = card?.querySelectorAll("[data-selects]") ?? [];
  const question = within ?? (all.length === 1 ? all[0] : null);
  return question?.querySelector<HTMLInputElement>(`input[data-digit="${number}"]`) ?? null;
}
