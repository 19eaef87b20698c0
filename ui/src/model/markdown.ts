// A safe little markdown for transcripts: paragraphs, lists, code, emphasis. No HTML, no images, no live links (S41). Pure,
// linear in the length of the text.

export type Inline =
  | { is: "text" | "code" | "strong" | "em"; text: string }
  /** A link or image: its words, and its address as text. */
  | { is: "link"; text: string; href: string; image: boolean };

export type Block =
  | { is: "p" | "h"; inlines: Inline[] }
  | { is: "code"; text: string }
  | { is: "ul" | "ol"; items: Inline[][] };

export function blocks(source: string): Block[] {
  const result: Block[] = [];
  let paragraph: string[] = [];
  let code: string[] | null = null;
  const flush = (): void => {
    if (paragraph.length > 0) result.push({ is: "p", inlines: inlines(paragraph.join("\n")) });
    paragraph = [];
  };
  for (const line of source.replaceAll("\r\n", "\n").split("\n")) {
    if (/^\s{0,3}(```|~~~)/.test(line)) {
      if (code === null) flush();
      else result.push({ is: "code", text: code.join("\n") });
      code = code === null ? [] : null;
      continue;
    }
    if (code !== null) {
      code.push(line);
      continue;
    }
    if (line.trim() === "") {
      flush();
      continue;
    }
    const heading = /^\s{0,3}#{1,6}\s+(.*)$/.exec(line);
    if (heading !== null) {
      flush();
      result.push({ is: "h", inlines: inlines(heading[1] ?? "") });
      continue;
    }
    const item = /^\s*(?:([-*+])|\d{1,9}[.)])\s+(.*)$/.exec(line);
    if (item !== null) {
      flush();
      const is = item[1] === undefined ? "ol" : "ul";
      const content = inlines(item[2] ?? "");
      const last = result.at(-1);
      if (last?.is === is) last.items.push(content);
      else result.push({ is, items: [content] });
      continue;
    }
    paragraph.push(line);
  }
  // A fence that was never closed still holds code.
  if (code !== null) result.push({ is: "code", text: code.join("\n") });
  flush();
  return result;
}

// Each alternative excludes its own delimiter and a newline inside, and is bounded, so matching never runs away.
const INLINE =
  /`([^`\n]{1,500})`|\*\*([^*\n]{1,500})\*\*|__([^_\n]{1,500})__|(?<![\w*])\*([^*\n]{1,500})\*(?!\w)|(?<!\w)_([^_\n]{1,500})_(?!\w)|(!?)\[([^\]\n]{0,500})\]\(([^()\s]{1,2000})\)/g;

export function inlines(text: string): Inline[] {
  const result: Inline[] = [];
  let from = 0;
  for (const match of text.matchAll(INLINE)) {
    if (match.index > from) result.push({ is: "text", text: text.slice(from, match.index) });
    from = match.index + match[0].length;
    const [, code, strong, strong2, em, em2, bang, words, href] = match;
    if (code !== undefined) result.push({ is: "code", text: code });
    else if (strong !== undefined || strong2 !== undefined) result.push({ is: "strong", text: strong ?? strong2 ?? "" });
    else if (em !== undefined || em2 !== undefined) result.push({ is: "em", text: em ?? em2 ?? "" });
    else if (href !== undefined) result.push({ is: "link", text: words ?? "", href, image: bang === "!" });
  }
  if (from < text.length) result.push({ is: "text", text: text.slice(from) });
  return result;
}
