// The guarded call that a confirm is about: tool, account, target and arguments, word for word; then the server's words for it.
import type { Confirm as Call } from "../api/types.ts";
import * as words from "../words.ts";
import { Long } from "./text.tsx";

export function Confirm({ call }: { call: Call }) {
  return (
    <>
      <pre tabIndex={0} role="region" aria-label={words.confirmArguments}>
        <b>
          <Long value={call.tool} most={200} />
        </b>
        {call.account !== null && (
          <>
            {"\n"}
            {words.confirmAccount} <Long value={call.account} most={200} />
          </>
        )}
        {call.target !== null && (
          <>
            {"\n"}
            {words.confirmTarget}  <Long value={call.target} most={200} />
          </>
        )}
        {"\n"}
        <Long value={call.arguments} most={4_000} />
      </pre>
      {call.preview !== null && call.preview !== "" && (
        <div>
          <p class="hint">{words.confirmPreview}</p>
          <pre tabIndex={0} role="region" aria-label={words.confirmPreview}>
            <Long value={call.preview} most={4_000} />
          </pre>
        </div>
      )}
    </>
  );
}

/** Whether a call on this part of the page is not shown whole: such a call is not accepted here (S26). */
export function isCut(part: HTMLElement | null): boolean {
  return part?.querySelector("pre .more") != null;
}
