// Who asks: the token, which is proven, first; names that a program gives itself are quoted (S26).
import type { Ask } from "../api/types.ts";
import type { Live } from "../state/live.ts";
import * as words from "../words.ts";
import { plain } from "../model/visible.ts";
import { Short } from "./text.tsx";

export function From({ live, ask, inSession }: { live: Live; ask: Ask; inSession: boolean }) {
  const { origin } = ask;
  const session = ask.session_id === null ? undefined : live.inbox.sessions.get(ask.session_id);
  return (
    <p class="from">
      <span class="chip">{words.holder(origin.holder)}</span>
      <b>
        <Short value={origin.holder_token} />
      </b>
      {origin.client !== null && (
        <>
          {words.cardAs}“<b><Short value={origin.client.name} /></b>”
          {origin.client.version !== null && (
            <>
              {" "}
              <Short value={origin.client.version} most={40} />
            </>
          )}
        </>
      )}
      {ask.mode === "url" ? words.cardAsksLink : words.cardVerbs[ask.source]}
      {origin.server !== null && (
        <>
          {words.cardForServer}“<b><Short value={origin.server} /></b>”
        </>
      )}
      {!inSession && session !== undefined && (
        <>
          {words.cardInSession}
          <a href={`/sessions/${encodeURIComponent(session.id)}`}>
            <Short value={session.title ?? words.sessionsUntitled} />
          </a>
        </>
      )}
    </p>
  );
}

/** The asking side in a sentence of ours: by its own name where it has one. */
export function asker(ask: Ask): string {
  return plain(ask.origin.client?.name ?? ask.origin.server ?? ask.origin.holder_token, 60);
}
