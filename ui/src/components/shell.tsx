// What surrounds every page: brand, navigation with the count, whether we hear from the inbox.
import type { ComponentChildren } from "preact";
import type { Route } from "../model/route.ts";
import { plain } from "../model/visible.ts";
import { useCell } from "../state/cell.ts";
import type { Live } from "../state/live.ts";
import * as words from "../words.ts";
import { Icon } from "./icon.tsx";

export function Shell({ live, page, open, children }: { live: Live; page: Route["page"]; open: boolean; children: ComponentChildren }) {
  useCell(live.version);
  const link = useCell(live.link);
  const count = live.inbox.openCount;
  const entry = (to: Route["page"], href: string, name: string, extra?: ComponentChildren) => (
    <a href={href} aria-current={page === to ? "page" : undefined}>
      {name}
      {extra}
    </a>
  );
  const state = link.is === "live" ? words.navLive(plain(live.login.name, 40)) : link.is === "lost" ? words.navLost : words.navConnecting;
  return (
    <div class={`app ${open ? "at-desk" : ""}`}>
      <button class="hide" type="button" onClick={() => document.getElementById("main")?.focus()}>
        {page === "settings" ? words.navSkipToContent : words.navSkipToList}
      </button>
      <header class="side">
        <a class="brand" href="/">
          <Icon name="hand" />
          {words.product}
        </a>
        <nav aria-label={words.navLabel}>
          {entry(
            "inbox",
            "/",
            words.pages.inbox,
            count > 0 && (
              <b aria-label={words.navWaiting(count)} role="img">
                {count > 999 ? "999+" : count}
              </b>
            ),
          )}
          {entry("sessions", "/sessions", words.pages.sessions)}
          {entry("settings", "/settings", words.pages.settings)}
        </nav>
        <p class={`live ${link.is === "live" ? "" : "off"}`} role="status">
          {state}
        </p>
      </header>
      {children}
    </div>
  );
}
