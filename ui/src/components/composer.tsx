// The next message to a session's agent.
import { useState } from "preact/hooks";
import { told } from "../api/client.ts";
import type { Session } from "../api/types.ts";
import { plain } from "../model/visible.ts";
import { may } from "../state/access.ts";
import type { Live } from "../state/live.ts";
import * as words from "../words.ts";
import { Failed } from "./failed.tsx";
import { submits } from "./submits.ts";

export function Composer({ live, session, waits }: { live: Live; session: Session; waits: boolean }) {
  const [draft, setDraft] = useState("");
  const [busy, setBusy] = useState(false);
  const [failed, setFailed] = useState<string | null>(null);

  const hindrance = !may(live.login, "admin")
    ? words.sessionsAdminOnly
    : session.state === "ended"
      ? words.sessionsIsEnded
      : !session.holder_connected
        ? words.sessionsNotConnected
        : waits
          ? words.sessionsWaitsForYou
          : session.state === "running"
            ? words.sessionsTurnRuns
            : null;
  const stopped = hindrance !== null || busy || draft.trim() === "";

  async function send(): Promise<void> {
    if (stopped) return;
    setBusy(true);
    setFailed(null);
    try {
      await live.api.send("POST", `/sessions/${encodeURIComponent(session.id)}/prompt`, { text: draft });
      setDraft("");
    } catch (error) {
      setFailed(words.sessionsSendFailed(told(error)));
    }
    setBusy(false);
  }

  return (
    <form
      class="compose"
      onSubmit={submits(send)}
    >
      {hindrance !== null && (
        <p class="hint" id="c">
          {hindrance}
        </p>
      )}
      <Failed text={failed} />
      <textarea
        class="field"
        rows={1}
        aria-label={words.sessionsMessageTo(plain(session.title ?? words.sessionsUntitled, 60))}
        aria-describedby={hindrance === null ? undefined : "c"}
        placeholder={words.sessionsNext}
        value={draft}
        onInput={(event) => setDraft(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key !== "Enter" || event.isComposing || !(event.ctrlKey || event.metaKey)) return;
          event.preventDefault();
          void send();
        }}
      />
      <button class="btn" type="submit" disabled={stopped}>
        {words.sessionsSend}
      </button>
    </form>
  );
}
