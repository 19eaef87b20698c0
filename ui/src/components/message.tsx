// The ask's own words: the first line as the heading, the rest as text under it.
import type { ComponentChildren } from "preact";
import { useRef, useEffect } from "preact/hooks";
import type { Ask } from "../api/types.ts";
import { Long } from "./text.tsx";

/** A longer first line is no heading. */
const HEADING = 200;

export function split(message: string): { head: string; rest: string } {
  const text = message.trim();
  const end = text.indexOf("\n");
  const first = end < 0 ? text : text.slice(0, end);
  if (first.length <= HEADING) return { head: first, rest: end < 0 ? "" : text.slice(end + 1).replace(/^\n+/, "") };
  const stop = text.lastIndexOf(" ", HEADING);
  const at = stop > HEADING / 2 ? stop : HEADING;
  return { head: `${text.slice(0, at)}…`, rest: text };
}

interface Props {
  ask: Ask;
  boxed: boolean;
  /** Moves the focus here: after the person has opened the card. */
  focus: boolean;
  id: string;
  between: ComponentChildren;
}

export function Message({ ask, boxed, focus, id, between }: Props) {
  const heading = useRef<HTMLHeadingElement>(null);
  const { head, rest } = split(ask.message);
  useEffect(() => {
    if (focus) heading.current?.focus({ preventScroll: false });
  }, [ask.id, focus]);
  const Heading = boxed ? "h2" : "h1";
  return (
    <>
      <Heading id={id} ref={heading} tabIndex={-1}>
        <Long value={head} most={400} />
      </Heading>
      {between}
      {rest !== "" &&
        (ask.source === "permission" || ask.source === "refusal" ? (
          <pre>
            <Long value={rest} />
          </pre>
        ) : (
          <p class="body">
            <Long value={rest} />
          </p>
        ))}
    </>
  );
}
