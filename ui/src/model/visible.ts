// Text that strangers wrote, made safe to read: what cannot be seen is shown as a mark, and what is cut is counted (S26). Pure.

export interface Piece {
  text: string;
  /** Whether `text` stands for a character that cannot be seen, such as "U+202E". */
  mark: boolean;
}

/**
 * C0 and C1 controls but tab and newline, DEL, soft hyphen, bidirectional controls, zero-width and other invisible
 * characters, line and paragraph separators, interlinear marks, fillers, variation selectors beyond emoji, tags.
 * Zero-width joiner and non-joiner stay: scripts and emoji need them.
 */
const UNSEEN =
  // eslint-disable-next-line no-control-regex
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb]|[\u{e0000}-\u{e0fff}]/gu;

export function pieces(text: string): Piece[] {
  const normal = text.replaceAll("\r\n", "\n");
  const found: Piece[] = [];
  let from = 0;
  for (const match of normal.matchAll(UNSEEN)) {
    if (match.index > from) found.push({ text: normal.slice(from, match.index), mark: false });
    found.push({ text: codePoint(match[0]), mark: true });
    from = match.index + match[0].length;
  }
  if (from < normal.length) found.push({ text: normal.slice(from), mark: false });
  return found;
}

/** The same as one string, for labels and live regions: on one line. */
export function plain(text: string, most = 160): string {
  const { head, hidden } = cut(text, most);
  const shown = pieces(head)
    .map((piece) => (piece.mark ? `[${piece.text}]` : piece.text))
    .join("")
    .replace(/\s+/g, " ")
    .trim();
  return hidden === 0 ? shown : `${shown}… (${count(hidden)} more characters)`;
}

/** Cuts after `most` characters without breaking one in two. */
export function cut(text: string, most: number): { head: string; hidden: number } {
  if (text.length <= most) return { head: text, hidden: 0 };
  const last = text.charCodeAt(most - 1);
  const end = last >= 0xd800 && last <= 0xdbff ? most - 1 : most;
  return { head: text.slice(0, end), hidden: text.length - end };
}

/** 12345 as "12,345". */
export function count(value: number): string {
  return String(value).replace(/\B(?=(\d{3})+$)/g, ",");
}

function codePoint(character: string): string {
  return `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}`;
}
