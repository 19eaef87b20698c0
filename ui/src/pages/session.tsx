// One session: who and where, what was said and done, the cards of its asks, and the composer.
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Session } from "../api/types.ts";
import { Card } from "../components/card.tsx";
import { Composer } from "../components/composer.tsx";
import { Failed } from "../components/failed.tsx";
import { Short } from "../components/text.tsx";
import { Turn } from "../components/turn.tsx";
import { signOf } from "../model/sessions.ts";
import { clock } from "../model/time.ts";
import { turns } from "../model/transcript.ts";
import { may } from "../state/access.ts";
import { useCell } from "../state/cell.ts";
import type { Live } from "../state/live.ts";
import * as words from "../words.ts";
import { Loading } from "./inbox.tsx";

/** So many entries are drawn at first; the earlier ones on demand. */
const SHOWN = 200;

export function SessionDesk({ live, sessionId }: { live: Live; sessionId: string }) {
  const version = useCell(live.version);
  const session = live.inbox.sessions.get(sessionId);
  const [loaded, setLoaded] = useState<boolean | null>(null);
  const [shown, setShown] = useState(SHOWN);
  const heading = useRef<HTMLHeadingElement>(null);

  useEffect(() => {
    void live.loadMessages(sessionId).then(setLoaded);
  }, [live, sessionId]);
  useEffect(() => heading.current?.focus({ preventScroll: true }), [session === undefined]);

  const openAsks = [...live.inbox.asks.values()].filter((ask) => ask.session_id === sessionId && ask.state !== "settled");
  const messages = live.inbox.messages.get(sessionId);
  const all = useMemo(
    () => turns(messages ?? [], new Set(openAsks.map((ask) => ask.tool_call_id).filter((id) => id !== null))),
    [messages, version],
  );
  const end = useStickyEnd(all.length);

  if (session === undefined) {
    if (!live.inbox.ready) return <Loading />;
    return (
      <section class="card">
        <header>
          <h1 tabIndex={-1}>{words.sessionsMissing}</h1>
        </header>
      </section>
    );
  }
  const drawn = all.slice(-shown);
  const inTranscript = new Set(all.map((turn) => (turn.is === "ask" ? turn.ask : "")));
  return (
    <>
      <Top live={live} session={session} heading={heading} />
      <div class="log">
        {loaded === null && (messages ?? []).length === 0 && <p class="hint">{words.sessionsLoading}</p>}
        <Failed text={loaded === false ? words.sessionsLoadFailed : null} />
        {all.length > shown && (
          <button class="btn plain" type="button" onClick={() => setShown(shown + SHOWN)}>
            {words.sessionsEarlier(all.length - shown)}
          </button>
        )}
        {drawn.map((turn) => (turn.is === "ask" ? <AskTurn live={live} askId={turn.ask} key={turn.key} /> : <Turn turn={turn} key={turn.key} />))}
        {openAsks
          .filter((ask) => !inTranscript.has(ask.id))
          .map((ask) => (
            <AskTurn live={live} askId={ask.id} key={ask.id} />
          ))}
        <div ref={end} />
      </div>
      <Composer live={live} session={session} waits={signOf(session) === "waiting"} />
    </>
  );
}

function Top({ live, session, heading }: { live: Live; session: Session; heading: { current: HTMLHeadingElement | null } }) {
  const [state, setState] = useState<"" | "cancelling" | "failed">("");
  useEffect(() => setState(""), [session.state]);
  async function cancel(): Promise<void> {
    setState("cancelling");
    await live.api.send("POST", `/sessions/${encodeURIComponent(session.id)}/cancel`).catch(() => setState("failed"));
  }
  return (
    <header class="top">
      <div>
        <h1 ref={heading} tabIndex={-1}>
          <Short value={session.title ?? words.sessionsUntitled} most={200} />
        </h1>
        <p>
          <Short value={session.holder_token} /> · “<Short value={session.agent} />”
          {session.cwd !== null && (
            <>
              {" · "}
              <Short value={session.cwd} most={200} />
            </>
          )}
          {` · ${words.sessionsSince(clock(Date.parse(session.started_at), live.now(), false))}`}
        </p>
        <p role="status">{state === "failed" ? words.sessionsCancelFailed : ""}</p>
      </div>
      {may(live.login, "admin") && session.state === "running" && (
        <button class="btn" type="button" aria-disabled={state === "cancelling" || undefined} onClick={() => void cancel()}>
          {state === "cancelling" ? words.sessionsCancelling : words.sessionsCancel}
        </button>
      )}
    </header>
  );
}

function AskTurn({ live, askId }: { live: Live; askId: string }) {
  const ask = live.inbox.asks.get(askId);
  useEffect(() => {
    if (ask === undefined && live.inbox.ready) void live.loadAsk(askId);
  }, [askId, ask === undefined, live.inbox.ready]);
  if (ask === undefined) {
    return (
      <section class="card boxed done">
        <p class="from">{words.cardLoading}</p>
      </section>
    );
  }
  return <Card live={live} ask={ask} boxed heading={`m-${ask.id}`} />;
}

/** Keeps the end in view while the reader is there, and leaves them alone where they are not. */
function useStickyEnd(size: number) {
  const end = useRef<HTMLDivElement>(null);
  const atEnd = useRef(true);
  useEffect(() => {
    if (end.current === null) return undefined;
    const watch = new IntersectionObserver((entries) => {
      atEnd.current = entries.at(-1)?.isIntersecting ?? false;
    }, { rootMargin: "0px 0px 120px 0px" });
    watch.observe(end.current);
    return () => watch.disconnect();
  }, [end.current]);
  useLayoutEffect(() => {
    if (!atEnd.current || end.current === null) return;
    // A card is read from its beginning.
    const cards = end.current.parentElement?.querySelectorAll('.card[data-phase="open"]') ?? [];
    const card = cards[cards.length - 1];
    if (card === undefined) end.current.scrollIntoView({ block: "end" });
    else card.scrollIntoView({ block: "start" });
  }, [size]);
  return end;
}
