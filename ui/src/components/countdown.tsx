// Until when, and what then happens. Counts by itself; is spoken once, a minute before the end.
import { useEffect, useRef, useState } from "preact/hooks";
import type { Ask } from "../api/types.ts";
import { clock, fine, MINUTE } from "../model/time.ts";
import { plain } from "../model/visible.ts";
import type { Live } from "../state/live.ts";
import { useTick } from "../state/tick.ts";
import * as words from "../words.ts";

export function Countdown({ live, ask, withOpened }: { live: Live; ask: Ask; withOpened: boolean }) {
  useTick(ask.deadline !== null);
  const now = live.now();
  const opened = withOpened ? `${words.cardOpened(clock(Date.parse(ask.opened_at), now, true))} · ` : "";
  if (ask.deadline === null) {
    return (
      <p class="when num">
        {opened}
        {words.cardNoDeadline}
      </p>
    );
  }
  const left = Date.parse(ask.deadline) - now;
  return (
    <p class="when num">
      {opened}
      {left > 0 ? (
        <>
          <b>{words.inboxLeft(fine(left))}</b>
          {words.cardThen(ask)}
        </>
      ) : (
        <b>{words.cardTimeUp}</b>
      )}
      <LastMinute left={left} message={ask.message} />
    </p>
  );
}

function LastMinute({ left, message }: { left: number; message: string }) {
  const before = useRef(left);
  const [said, setSaid] = useState(false);
  useEffect(() => {
    if (before.current > MINUTE && left <= MINUTE) setSaid(true);
    before.current = left;
  }, [left]);
  return (
    <span class="hide" role="status">
      {said ? words.cardOneMinute(plain(message, 80)) : ""}
    </span>
  );
}
