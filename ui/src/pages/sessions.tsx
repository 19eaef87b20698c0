// The sessions of all agents, and the transcript of the one that is chosen.
import { useState } from "preact/hooks";
import type { Session as Of } from "../api/types.ts";
import { Icon, type IconName } from "../components/icon.tsx";
import { Start } from "../components/start.tsx";
import { Short } from "../components/text.tsx";
import { sessionGroups, signOf, type SessionSign } from "../model/sessions.ts";
import { coarse } from "../model/time.ts";
import { may } from "../state/access.ts";
import { useCell } from "../state/cell.ts";
import type { Live } from "../state/live.ts";
import { useTick } from "../state/tick.ts";
import * as words from "../words.ts";
import { SessionDesk } from "./session.tsx";

export function SessionsPage({ live, sessionId }: { live: Live; sessionId: string | null }) {
  useCell(live.version);
  useTick();
  const [starting, setStarting] = useState(false);
  const groups = sessionGroups(live.inbox.sessions.values());
  return (
    <main id="main" class="split" tabIndex={-1}>
      <section class="list" aria-labelledby="t">
        <header class="line">
          <h1 id="t">{words.sessionsTitle}</h1>
          {may(live.login, "admin") && (
            <button class="btn" type="button" aria-expanded={starting} onClick={() => setStarting(!starting)}>
              {words.sessionsStart}
            </button>
          )}
        </header>
        {starting && <Start live={live} onDone={() => setStarting(false)} />}
        {live.inbox.ready && groups.length === 0 && <p class="hint inset">{words.sessionsNone}</p>}
        {!live.inbox.ready && <p class="hint inset">{words.inboxLoading}</p>}
        {groups.map(({ group, sessions }) => (
          <div key={group}>
            <h2>{words.sessionsGroups[group]}</h2>
            <ol aria-label={words.sessionsGroups[group]}>
              {sessions.map((session) => (
                <li key={session.id}>
                  <Row live={live} session={session} current={session.id === sessionId} />
                </li>
              ))}
            </ol>
          </div>
        ))}
      </section>
      <div class="desk">
        {sessionId === null ? (
          <p class="hint pick-hint">{words.sessionsPick}</p>
        ) : (
          <>
            <a class="back" href="/sessions">
              {words.sessionsBack}
            </a>
            <SessionDesk live={live} sessionId={sessionId} key={sessionId} />
          </>
        )}
      </div>
    </main>
  );
}

const SIGNS: Record<SessionSign, { icon: IconName; kind: string; testId?: string }> = {
  waiting: { icon: "hand", kind: "on", testId: "task-state-waiting-for-input" },
  running: { icon: "arc", kind: "on spin", testId: "task-state-running" },
  background: { icon: "arc", kind: "on dash", testId: "task-state-background-running" },
  finished: { icon: "check", kind: "" },
  cancelled: { icon: "cut", kind: "" },
  failed: { icon: "x", kind: "" },
};

function Row({ live, session, current }: { live: Live; session: Of; current: boolean }) {
  const sign = signOf(session);
  const { icon, kind, testId } = SIGNS[sign];
  const span = coarse(live.now() - Date.parse(session.updated_at));
  return (
    <a class={`ask sess ${sign === "waiting" ? "new" : ""}`} href={`/sessions/${encodeURIComponent(session.id)}`} aria-current={current ? "true" : undefined} data-row={session.id}>
      <Icon name={icon} kind={kind} label={words.sessionsIcons[sign]} testId={testId} />
      <b>
        <Short value={session.title ?? words.sessionsUntitled} most={120} />
      </b>
      <small>{sign === "waiting" || sign === "running" ? span : words.inboxAgo(span)}</small>
      <small>
        <Short value={session.agent} most={60} />
        {" · "}
        <Short value={line(session, sign)} />
      </small>
    </a>
  );
}

function line(session: Of, sign: SessionSign): string {
  if (session.state !== "ended" && !session.holder_connected) return words.inboxDisconnected;
  if (sign === "waiting") return words.sessionsAsksOpen(Math.max(1, session.waiting));
  if (sign === "failed") return words.sessionsStopped((session.stop_reason ?? "").replaceAll("_", " "));
  if (sign !== "finished") return words.sessionsSigns[sign];
  return session.stop_reason === null ? (session.state === "ended" ? words.sessionsEndedLine : words.sessionsIdle) : words.sessionsFinished;
}
