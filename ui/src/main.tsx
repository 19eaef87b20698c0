// The page's beginning: signed out or in, and which page of it.
import "./style/tokens.css";
import "./style/base.css";
import "./style/shell.css";
import "./style/controls.css";
import "./style/list.css";
import "./style/card.css";
import "./style/notes.css";
import "./style/sessions.css";
import "./style/pages.css";
import "./style/small.css";
import { render } from "preact";
import { useCallback, useEffect, useState } from "preact/hooks";
import { access, linkSecret, type Access } from "./state/access.ts";
import { useCell } from "./state/cell.ts";
import { forgetEntries } from "./state/entries.ts";
import { useKeyboard } from "./state/keyboard.ts";
import { goLive, type Live } from "./state/live.ts";
import { route } from "./state/router.ts";
import { forgetSubmissions } from "./state/submissions.ts";
import { showCount } from "./state/title.ts";
import { KeyHelp } from "./components/keys.tsx";
import { Shell } from "./components/shell.tsx";
import { InboxPage } from "./pages/inbox.tsx";
import { SessionsPage } from "./pages/sessions.tsx";
import { SettingsPage } from "./pages/settings.tsx";
import { SignIn } from "./pages/sign-in.tsx";
import * as words from "./words.ts";

function App() {
  const now = useCell(access);
  const fresh = useCell(linkSecret);
  // A new link wins over an old sign-in, which may be of another inbox at this address.
  if (now.is === "out" || fresh !== null) return <Out because={now.is === "out" ? now.because : null} />;
  return <In access={now} key={now.login.token} />;
}

function Out({ because }: { because: string | null }) {
  useEffect(() => showCount("", 0), []);
  return <SignIn because={because} />;
}

function In({ access: { login, api } }: { access: Extract<Access, { is: "in" }> }) {
  const [live, setLive] = useState<Live | null>(null);
  useEffect(() => {
    const opened = goLive(login, api);
    setLive(opened);
    return () => {
      opened.close();
      forgetEntries();
      forgetSubmissions();
    };
  }, [login, api]);
  return live === null ? null : <Page live={live} />;
}

function Page({ live }: { live: Live }) {
  const at = useCell(route);
  useCell(live.version);
  const [help, setHelp] = useState(false);
  useKeyboard(live.inbox, useCallback(() => setHelp(true), []));
  const open = (at.page === "inbox" && (at.ask !== null || at.together === true)) || (at.page === "sessions" && at.session !== null);
  const count = live.inbox.openCount;
  useEffect(() => showCount(words.pages[at.page], count), [at.page, count]);
  return (
    <>
      <Shell live={live} page={at.page} open={open}>
        {at.page === "inbox" && <InboxPage live={live} askId={at.ask} together={at.together === true} />}
        {at.page === "sessions" && <SessionsPage live={live} sessionId={at.session} />}
        {at.page === "settings" && <SettingsPage live={live} tab={at.tab} key={at.tab} />}
      </Shell>
      {help && <KeyHelp onClose={() => setHelp(false)} />}
    </>
  );
}

const root = document.getElementById("root");
if (root !== null) render(<App />, root);
