// The two ways out of a card: Skip on the left, Submit on the right, and between them what will be sent.
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Ask } from "../api/types.ts";
import type { Notice } from "../model/phase.ts";
import { clock } from "../model/time.ts";
import { plain } from "../model/visible.ts";
import type { Guarded } from "../state/guarded.ts";
import type { Live } from "../state/live.ts";
import * as words from "../words.ts";
import { destinationOf, suspicious } from "./link.tsx";

interface Props {
  live: Live;
  ask: Ask;
  sent: boolean;
  notice: Notice | null;
  answered: number;
  needed: number;
  savedAt: number | null;
  said: string;
  skipping: boolean;
  guard: Guarded;
  onSkipping(event: MouseEvent, on: boolean): void;
  onSkip(allowed: boolean, reason: string): void;
  onSubmit(event: MouseEvent): void;
}

const isMac = /Mac|iPhone|iPad/.test(navigator.platform);

export function Foot(props: Props) {
  const { live, ask, sent, notice, said, skipping, onSkipping, onSubmit } = props;
  if (sent) {
    return (
      <div class="foot">
        <p>{words.cardNotSettled}</p>
        <button class="btn" type="button" disabled>
          {words.cardSubmit}
        </button>
      </div>
    );
  }
  if (notice === "offline") {
    return (
      <div class="foot">
        <button class="btn" type="button" onClick={() => live.retryNow()}>
          {words.noticeTryNow}
        </button>
        <button class="btn" type="button" disabled>
          {labels(ask, notice).submit}
        </button>
      </div>
    );
  }
  if (notice === "readonly") return null;
  if (skipping) return <Why {...props} />;

  const { skip, submit, tone, skipFirst } = labels(ask, notice);
  return (
    <div class="foot">
      <button
        class={`btn ${skipFirst ? "primary" : ""}`}
        type="button"
        onClick={(event) => (ask.source === "confirm" || ask.mode === "url" ? props.onSkip(props.guard.click(event), "") : onSkipping(event, true))}
      >
        {skip}
      </button>
      <p>
        <span role="status">{said === "" ? progress(props) : said}</span>
        {said === "" && props.savedAt !== null && <span>{words.cardDraftSaved(clock(props.savedAt, Date.now(), false))}</span>}
      </p>
      <button class={`btn ${tone}`} type="button" aria-disabled={props.needed > 0 || undefined} onClick={onSubmit}>
        {submit}
        {ask.source !== "confirm" && ask.mode !== "url" && <kbd aria-hidden="true">{isMac ? words.cardSubmitKeysMac : words.cardSubmitKeys}</kbd>}
      </button>
    </div>
  );
}

function progress({ ask, answered, needed }: Props): string {
  const all = ask.questions.length;
  if (ask.mode === "url" || ask.source === "confirm" || all < 2) return "";
  return words.cardProgress(answered, all, ask.allows_partial, needed);
}

function labels(ask: Ask, notice: Notice | null): { skip: string; submit: string; tone: string; skipFirst: boolean } {
  if (ask.confirm !== null && ask.source === "confirm") {
    const action = plain(ask.confirm.action ?? words.confirmAct(ask.confirm.tool), 80);
    return { skip: words.confirmRefuse(action), submit: action, tone: "danger", skipFirst: false };
  }
  if (ask.mode === "url") {
    const to = destinationOf(ask);
    const risky = to === null || suspicious(to);
    return { skip: words.linkDoNot, submit: risky ? words.linkOpenAnyway : words.linkOpen(to.host), tone: risky ? "" : "primary", skipFirst: risky };
  }
  const submit = notice === "undelivered" || notice === "failed" ? words.cardSubmitAgain : notice === "parked" ? words.cardKeep : words.cardSubmit;
  return { skip: words.cardSkip, submit, tone: "primary", skipFirst: false };
}

/** The optional reason; Enter skips. */
function Why({ ask, said, guard, onSkip, onSkipping }: Props) {
  const [reason, setReason] = useState("");
  const field = useRef<HTMLInputElement>(null);
  // Before the next key press: what is typed right after `s` belongs here.
  useLayoutEffect(() => field.current?.focus(), []);
  const id = `why-${ask.id}`;
  return (
    <div class="foot why">
      <label for={id}>{words.cardWhy}</label>
      <input
        class="field"
        id={id}
        ref={field}
        maxLength={1_000}
        autocomplete="off"
        value={reason}
        onInput={(event) => setReason(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key !== "Enter" || event.isComposing || event.ctrlKey || event.metaKey) return;
          event.preventDefault();
          onSkip(guard.key(), reason.trim());
        }}
      />
      <p>
        <span role="status">{said}</span>
      </p>
      <button class="btn plain" type="button" onClick={(event) => onSkipping(event, false)}>
        {words.cardSkipBack}
      </button>
      <button class="btn" type="button" onClick={(event) => onSkip(guard.click(event), reason.trim())}>
        {words.cardSkipNow}
      </button>
    </div>
  );
}
