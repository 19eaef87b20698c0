// A button that copies text and says that it did.
import { useState } from "preact/hooks";
import * as words from "../words.ts";

export function Copy({ text, label = words.textCopy, of }: { text: string; label?: string; of?: string }) {
  const [done, setDone] = useState(false);
  async function copy(): Promise<void> {
    try {
      await navigator.clipboard.writeText(text);
      setDone(true);
    } catch {
      setDone(false);
    }
  }
  return (
    <button class="btn plain small" type="button" aria-label={of === undefined || done ? undefined : words.textCopyLink(of)} onClick={() => void copy()}>
      {done ? words.textCopied : label}
    </button>
  );
}
