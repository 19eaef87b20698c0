// Text that may be JSON. Pure.

/** The value, or null where the text is none. */
export function parsed(text: string | null): unknown {
  try {
    return JSON.parse(text ?? "null");
  } catch {
    return null;
  }
}
