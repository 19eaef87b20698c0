// The marked asks on one page, each with its own choice, answered by one button: all of them or none (S44).
import { useEffect, useRef, useState } from "preact/hooks";
import type { Answer, Ask } from "../api/types.ts";
import { lacking, toAnswers } from "../model/answers.ts";
import { useCell } from "../state/cell.ts";
import { entriesOf } from "../state/entries.ts";
import { useGuard } from "../state/guarded.ts";
import type { Live } from "../state/live.ts";
import { marked } from "../state/marked.ts";
import { reported } from "../state/seen.ts";
import { submitTogether } from "../state/submissions.ts";
import * as words from "../words.ts";
import { Card, focusFirst } from "./card.tsx";
import { isCut } from "./confirm.tsx";

/** No question of such an ask is filled in for the operator (S40). */
const NOTHING_FILLED_IN: ReadonlySet<string> = new Set();

export function Together({ live }: { live: Live }) {
  const root = useRef<HTMLDivElement>(null);
  const heading = useRef<HTMLHeadingElement>(null);
  useCell(live.version);
  const asks = [...useCell(marked)].map((id) => live.inbox.asks.get(id)).filter((ask) => ask !== undefined);
  const open = asks.filter((ask) => ask.state === "open");
  const guard = useGuard(root, open.map((ask) => ask.digest).join());
  const [said, setSaid] = useState("");
  useEffect(() => heading.current?.focus(), []);

  async function send(): Promise<void> {
    const entries = (ask: Ask) => entriesOf(ask).get().entries;
    const left = open.find((ask) => lacking({ ...ask, allows_partial: false }, entries(ask), NOTHING_FILLED_IN).length > 0);
    if (left !== undefined) {
      setSaid(words.cardAnswerAll);
      focusFirst(root.current?.querySelector(`[data-ask="${CSS.escape(left.id)}"]`) ?? null, left.questions[0]?.id);
      return;
    }
    if (isCut(root.current)) return setSaid(words.confirmHidden);
    setSaid("");
    const answers = new Map<Ask, Answer[]>(open.map((ask) => [ask, toAnswers(ask, entries(ask), NOTHING_FILLED_IN)]));
    await Promise.all(open.map((ask) => reported(live, ask)));
    setSaid(await submitTogether(live, answers));
  }

  return (
    <div class="together" ref={root}>
      <h1 tabIndex={-1} ref={heading}>
        {words.togetherTitle}
      </h1>
      {asks.map((ask) => (
        <Card live={live} ask={ask} boxed together heading={`m-${ask.id}`} key={ask.id} />
      ))}
      <div class="foot">
        <p role="status">{said}</p>
        {open.length > 0 && (
          <button class="btn primary" type="button" onClick={(event) => (guard.click(event) ? void send() : setSaid(words.cardTooSoon))}>
            {words.togetherSend(open.length)}
          </button>
        )}
      </div>
    </div>
  );
}
