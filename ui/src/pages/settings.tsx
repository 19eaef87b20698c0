// Settings: runtime flags, and access tokens.
import { useEffect, useState } from "preact/hooks";
import { told } from "../api/client.ts";
import type { Flag } from "../api/types.ts";
import { Failed } from "../components/failed.tsx";
import { Short } from "../components/text.tsx";
import { clock } from "../model/time.ts";
import { plain } from "../model/visible.ts";
import { may, signOut } from "../state/access.ts";
import type { Live } from "../state/live.ts";
import * as words from "../words.ts";
import { Tokens } from "../components/tokens.tsx";

export function SettingsPage({ live, tab }: { live: Live; tab: "flags" | "access" }) {
  const admin = may(live.login, "admin");
  return (
    <main id="main" class="page" tabIndex={-1}>
      <header>
        <h1>{words.settingsTitle}</h1>
        <p class="lead">
          {words.accessSignedInAs(plain(live.login.name, 60), live.login.scope)}{" "}
          <button class="btn plain" type="button" onClick={() => void signOut()}>
            {words.signInOut}
          </button>
        </p>
      </header>
      <nav class="tabs" aria-label={words.settingsTitle}>
        <a href="/settings" aria-current={tab === "flags" ? "page" : undefined}>
          {words.settingsFlags}
        </a>
        <a href="/settings/access" aria-current={tab === "access" ? "page" : undefined}>
          {words.settingsAccess}
        </a>
      </nav>
      {!admin ? <p class="hint">{words.settingsAdminOnly}</p> : tab === "flags" ? <Flags live={live} /> : <Tokens live={live} />}
    </main>
  );
}

function Flags({ live }: { live: Live }) {
  const [flags, setFlags] = useState<Flag[] | null>(null);
  const [status, setStatus] = useState("");
  const [failed, setFailed] = useState<string | null>(null);

  async function load(): Promise<void> {
    const list = await live.api.get<{ flags: Flag[] }>("/flags");
    setFlags(list.flags);
  }
  const fail = (error: unknown): void => setFailed(words.settingsFailed(told(error)));
  useEffect(() => void load().catch(fail), [live]);

  async function set(flag: Flag, value: boolean | null): Promise<void> {
    setFailed(null);
    try {
      await live.api.send("PUT", `/flags/${encodeURIComponent(flag.name)}`, { value });
      await load();
      setStatus(words.settingsSaved(clock(Date.now(), Date.now(), false)));
    } catch (error) {
      fail(error);
      // The switch goes back to what is in force.
      await load().catch(() => undefined);
    }
  }

  return (
    <>
      <Failed text={failed} />
      {flags === null && failed === null && <p class="hint">{words.settingsLoading}</p>}
      {flags?.map((flag, index) => {
        const known = words.settingsKnown[flag.name];
        const [title, about] = [`f${index}`, `d${index}`];
        return (
          <section class="flag" key={flag.name}>
            <div>
              <h2 id={title}>{known?.title ?? <Short value={flag.name} />}</h2>
              {known !== undefined && <p id={about}>{known.text}</p>}
              <small>
                <code>{flag.name}</code> · {words.settingsSource[flag.source]}
                {known !== undefined && ` · ${known.applies}`}
                {flag.source === "setting" && (
                  <>
                    {" · "}
                    <button class="btn plain small" type="button" onClick={() => void set(flag, null)}>
                      {words.settingsTakeBack}
                    </button>
                  </>
                )}
              </small>
            </div>
            <input
              class="switch"
              type="checkbox"
              role="switch"
              checked={flag.value}
              aria-labelledby={title}
              aria-describedby={known === undefined ? undefined : about}
              onChange={(event) => void set(flag, event.currentTarget.checked)}
            />
          </section>
        );
      })}
      <p class="hint" role="status">
        {status === "" ? words.settingsOrder : status}
      </p>
    </>
  );
}
