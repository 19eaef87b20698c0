// The page that an ask wants opened: host first, full address as text, warnings about what the host hides. Nothing is fetched.
import type { Ask } from "../api/types.ts";
import { destination, type Destination } from "../model/host.ts";
import * as words from "../words.ts";
import { Copy } from "./copy.tsx";
import { Icon } from "./icon.tsx";
import { Long } from "./text.tsx";

export function destinationOf(ask: Ask): Destination | null {
  return ask.url === null ? null : destination(ask.url);
}

export function suspicious(to: Destination): boolean {
  return to.shown !== null || to.disguise !== null;
}

export function Link({ ask }: { ask: Ask }) {
  const to = destinationOf(ask);
  const url = ask.url ?? "";
  if (to === null) {
    return (
      <div>
        <p class="url note warn">
          <Icon name="warn" />
          <span>
            <Long value={url} />
          </span>
        </p>
        <p class="hint warn">{words.linkUnusable}</p>
      </div>
    );
  }
  const warnings = [
    to.shown === null ? null : words.linkLookalike(to.shown),
    to.disguise === null ? null : words.linkDisguise(to.disguise),
    to.unencrypted ? words.linkUnencrypted : null,
  ].filter((line) => line !== null);
  return (
    <div>
      <p class={`url note ${suspicious(to) ? "warn" : ""}`}>
        {suspicious(to) && <Icon name="warn" />}
        <span>
          <b>{to.host}</b>
          <Long value={url} />
        </span>
        <Copy text={url} label={words.textCopy} of={to.host} />
      </p>
      {warnings.map((line) => (
        <p class="hint warn">{line}</p>
      ))}
      <p class="hint">{words.linkNotFetched(to.host)}</p>
    </div>
  );
}
