// The guarded call that a confirm is about: tool, account, target and arguments, word for word.
import type { Confirm as Call } from "../api/types.ts";
import * as words from "../words.ts";
import { Long, Short } from "./text.tsx";

export function Confirm({ call }: { call: Call }) {
  return (
    <>
      <pre tabIndex={0} role="region" aria-label={words.confirmArguments}>
        <b>
          <Short value={call.tool} most={200} />
        </b>
        {call.account !== null && (
          <>
            {"\n"}
            {words.confirmAccount} <Short value={call.account} most={200} />
          </>
        )}
        {call.target !== null && (
          <>
            {"\n"}
            {words.confirmTarget}  <Short value={call.target} most={200} />
          </>
        )}
        {"\n"}
        <Long value={call.arguments} most={4_000} />
      </pre>
      {call.preview !== null && call.preview !== "" && (
        <pre tabIndex={0} role="region" aria-label={words.confirmPreview}>
          <Long value={call.preview} most={4_000} />
        </pre>
      )}
    </>
  );
}
