// The inbox: the list of open asks, and the card of the one that is chosen.
import { useEffect, useMemo, useState } from "preact/hooks";
import { Card } from "../components/card.tsx";
import { Icon } from "../components/icon.tsx";
import { KeyLine } from "../components/keys.tsx";
import { List } from "../components/list.tsx";
import { Together } from "../components/together.tsx";
import { asker } from "../components/from.tsx";
import { group, kindOf, matches, type Filter } from "../model/groups.ts";
import { useCell } from "../state/cell.ts";
import type { Live } from "../state/live.ts";
import { marked } from "../state/marked.ts";
import { view, viewed } from "../state/viewed.ts";
import * as words from "../words.ts";

const FILTERS: Filter[] = ["all", "agents", "gateways", "scripts"];

export function InboxPage({ live, askId, together }: { live: Live; askId: string | null; together: boolean }) {
  const version = useCell(live.version);
  const seen = useCell(viewed);
  const marks = [...useCell(marked)].filter((id) => live.inbox.asks.get(id)?.state === "open").length;
  const [search, setSearch] = useState("");
  const [filter, setFilter] = useState<Filter>("all");
  const [expanded, setExpanded] = useState<ReadonlySet<string>>(new Set());
  const { inbox } = live;
  // Groups depend on the time, but need not follow it by the second.
  const minute = Math.floor(live.now() / 10_000);

  useEffect(() => {
    if (askId !== null) view(askId);
  }, [askId]);

  const open = useMemo(() => [...inbox.asks.values()].filter((ask) => ask.state !== "settled" || ask.id === askId), [version, askId]);
  const tallies = useMemo(() => {
    const tally = { agents: 0, gateways: 0, scripts: 0 };
    for (const ask of open) if (ask.state !== "settled") tally[kindOf(ask.origin.holder)] += 1;
    return tally;
  }, [open]);
  const groups = useMemo(() => {
    const wanted = open.filter((ask) => {
      const session = ask.session_id === null ? null : (inbox.sessions.get(ask.session_id)?.title ?? null);
      return (filter === "all" || kindOf(ask.origin.holder) === filter) && matches(ask, session, search.trim());
    });
    return group(wanted, live.now(), expanded);
  }, [open, filter, search, expanded, minute]);

  if (inbox.ready && open.length === 0 && askId === null && !together) return <Calm live={live} />;
  return (
    <main id="main" class="split" tabIndex={-1}>
      <section class="list" aria-labelledby="t">
        <header>
          <h1 id="t">{words.inboxTitle}</h1>
          <div class="find">
            <input
              class="field"
              type="search"
              aria-label={words.inboxFind}
              placeholder={words.inboxFind}
              value={search}
              onInput={(event) => setSearch(event.currentTarget.value)}
            />
            <kbd aria-hidden="true">/</kbd>
          </div>
          <div class="pick" role="group" aria-label={words.inboxOrigin}>
            {FILTERS.filter((name) => name === "all" || name === filter || tallies[name] > 0).map((name) => (
              <button type="button" aria-pressed={filter === name} onClick={() => setFilter(name)} key={name}>
                {words.inboxFilters[name]}
                {name !== "all" && ` ${tallies[name]}`}
              </button>
            ))}
          </div>
          <div role="status">
            {marks > 0 && (
              <a class="btn" href="/together">
                {words.togetherMarked(marks)}
              </a>
            )}
          </div>
        </header>
        {!inbox.ready && <p class="hint inset">{words.inboxLoading}</p>}
        {inbox.ready && groups.length === 0 && <p class="hint inset">{open.length > 0 ? words.inboxNothingFound : words.emptyTitle}</p>}
        <List live={live} groups={groups} current={askId} seen={seen} onExpand={(holder) => setExpanded(new Set([...expanded, holder]))} />
        {inbox.unloaded > 0 && <p class="hint inset">{words.inboxUnloaded(inbox.unloaded)}</p>}
        <Arrivals live={live} />
      </section>
      <div class="desk">
        {askId === null && !together ? (
          <p class="hint pick-hint">{words.inboxPick}</p>
        ) : (
          <>
            <a class="back" href="/">
              {words.cardBack}
            </a>
            {askId === null ? <Together live={live} /> : <Desk live={live} askId={askId} key={askId} />}
          </>
        )}
      </div>
    </main>
  );
}

function Desk({ live, askId }: { live: Live; askId: string }) {
  useCell(live.version);
  const ask = live.inbox.asks.get(askId);
  const [state, setState] = useState<"loading" | "missing" | "failed">("loading");
  const ready = live.inbox.ready;
  useEffect(() => {
    if (ask !== undefined || !ready) return;
    void live.loadAsk(askId).then((found) => {
      if (found !== "found") setState(found);
    });
  }, [askId, ask === undefined, ready]);
  if (ask !== undefined) {
    return (
      <>
        <Card live={live} ask={ask} heading="m" focus />
        <KeyLine />
      </>
    );
  }
  if (state === "loading") return <Loading />;
  return (
    <section class="card" data-phase={state} aria-labelledby="m">
      <header>
        <h1 id="m" tabIndex={-1}>
          {words.cardMissingTitle}
        </h1>
        <p class="when">{state === "missing" ? words.cardMissing : words.cardUnreadable}</p>
      </header>
    </section>
  );
}

export function Loading() {
  return (
    <div class="card" aria-busy="true" data-phase="loading">
      <h1 class="from">{words.cardLoading}</h1>
      <div class="skel w2" />
      <div class="skel w1" />
      <div class="skel w3" />
    </div>
  );
}

function Arrivals({ live }: { live: Live }) {
  const arrived = live.inbox.arrived;
  return (
    <p class="hide" role="status">
      {arrived === null ? "" : words.inboxArrived(asker(arrived.ask))}
    </p>
  );
}

function Calm({ live }: { live: Live }) {
  const sessions = [...live.inbox.sessions.values()];
  if (sessions.length === 0 && !everHadOne()) {
    return (
      <main id="main" class="calm" tabIndex={-1}>
        <h1>{words.firstTitle}</h1>
        <p>{words.firstText}</p>
        <ol class="steps">
          {words.firstSteps.map((step) => (
            <li key={step.title}>
              <b>{step.title}</b>
              <pre tabIndex={0} role="region" aria-label={step.title}>{step.code}</pre>
            </li>
          ))}
        </ol>
        <p class="hint" role="status">
          {words.firstStatus(location.host)}
        </p>
      </main>
    );
  }
  const running = sessions.filter((session) => session.state === "running").length;
  return (
    <main id="main" class="calm" tabIndex={-1}>
      <Icon name="hand" />
      <h1>{words.emptyTitle}</h1>
      <p>{words.emptyText(running)}</p>
      <p>
        <a href="/sessions">{words.emptySee}</a>
      </p>
      <Arrivals live={live} />
    </main>
  );
}

function everHadOne(): boolean {
  return viewed.get().size > 0;
}
