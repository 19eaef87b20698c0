// The keys of the page: a line under the card, and the whole list in a dialog.
import { useEffect, useRef } from "preact/hooks";
import * as words from "../words.ts";

export function KeyLine() {
  return (
    <p class="keys" aria-hidden="true">
      <span>
        <kbd>j</kbd> <kbd>k</kbd> {words.keysMove}
      </span>
      <span>
        <kbd>↵</kbd> {words.keysOpen}
      </span>
      <span>
        <kbd>1</kbd>–<kbd>9</kbd> {words.keysChoose}
      </span>
      <span>
        <kbd>s</kbd> {words.keysSkip}
      </span>
      <span>
        <kbd>?</kbd> {words.navAllKeys}
      </span>
    </p>
  );
}

export function KeyHelp({ onClose }: { onClose(): void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} aria-labelledby="keys-title" onClose={onClose}>
      <h2 id="keys-title">{words.keysTitle}</h2>
      <dl class="facts">
        {words.keysList.map(([keys, what]) => (
          <>
            <dt>{keys}</dt>
            <dd>{what}</dd>
          </>
        ))}
      </dl>
      <button class="btn" type="button" onClick={() => dialog.current?.close()}>
        {words.keysClose}
      </button>
    </dialog>
  );
}
