// One ask as a row of the inbox list.
import type { Ask } from "../api/types.ts";
import { hasDraft } from "../model/drafts.ts";
import { coarse, MINUTE } from "../model/time.ts";
import { count, cut } from "../model/visible.ts";
import { marked } from "../state/marked.ts";
import type { Live } from "../state/live.ts";
import * as words from "../words.ts";
import { Short, Text } from "./text.tsx";

/** A row shows two lines of it; what is longer is counted. */
const TITLE = 120;

export function Row({ live, ask, current, seen }: { live: Live; ask: Ask; current: boolean; seen: boolean }) {
  const now = live.now();
  const left = ask.deadline === null ? null : Date.parse(ask.deadline) - now;
  const session = ask.session_id === null ? undefined : live.inbox.sessions.get(ask.session_id);
  const { head, hidden } = cut(ask.message.trim().split("\n", 1)[0] ?? "", TITLE);
  const isNew = !seen && ask.state === "open";

  const facts = [
    words.sources[ask.source] !== "" && ask.source !== "confirm" ? words.sources[ask.source] : null,
    ask.mode === "url" ? words.inboxLink : null,
    ask.parked_until !== null ? words.inboxParked : null,
    ask.holder_connected || ask.state === "settled" ? null : words.inboxDisconnected,
    marked.get().has(ask.id) ? words.inboxMarked : null,
    ask.state !== "settled" && hasDraft(localStorage, ask.id) ? words.inboxDraft : null,
  ].filter((fact) => fact !== null);
  const claims = [
    ask.origin.client === null ? null : `“${ask.origin.client.name}”`,
    ask.origin.server === null ? null : `“${ask.origin.server}”`,
    session?.title ?? null,
  ].filter((claim) => claim !== null);

  return (
    <a class={`ask ${isNew ? "new" : ""}`} href={`/asks/${encodeURIComponent(ask.id)}`} aria-current={current ? "true" : undefined} data-row={ask.id}>
      <b>
        {isNew && <span class="hide">{words.inboxNewRow}</span>}
        <Text value={hidden > 0 ? `${head}…` : head} />
      </b>
      <small class={left !== null && left <= 5 * MINUTE && ask.state !== "settled" ? "soon" : ""}>{timeWords(ask, left)}</small>
      <small>
        <span class="chip">{words.holder(ask.origin.holder)}</span>{" "}
        {ask.source === "confirm" && (
          <>
            <span class="chip danger">{words.sources.confirm}</span>{" "}
          </>
        )}
        {[...facts, ""].join(" · ")}
        <Short value={ask.origin.holder_token} most={60} />
        {claims.map((claim) => (
          <>
            {" · "}
            <Short value={claim} most={60} />
          </>
        ))}
        {hidden > 0 && ` · ${words.inboxCharacters(count(hidden))}`}
      </small>
      <small>{age(ask, now)}</small>
    </a>
  );
}

function timeWords(ask: Ask, left: number | null): string {
  if (ask.state === "settled") return words.inboxSettled;
  if (ask.state === "sent") return words.inboxSent;
  if (left === null) return words.inboxWaits;
  return left > 0 ? words.inboxLeft(coarse(left)) : words.inboxTimeUp;
}

function age(ask: Ask, now: number): string {
  const old = now - Date.parse(ask.opened_at);
  return old < 10_000 ? words.inboxJustNow : words.inboxAgo(coarse(old));
}
