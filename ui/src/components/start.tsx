// Starts a session with one of the agents of the configuration.
import { useState } from "preact/hooks";
import { CallError } from "../api/client.ts";
import type { Session } from "../api/types.ts";
import { plain } from "../model/visible.ts";
import type { Live } from "../state/live.ts";
import { go } from "../state/router.ts";
import * as words from "../words.ts";

export function Start({ live, onDone }: { live: Live; onDone(): void }) {
  const [agent, setAgent] = useState("");
  const [cwd, setCwd] = useState("");
  const [prompt, setPrompt] = useState("");
  const [busy, setBusy] = useState(false);
  const [failed, setFailed] = useState<string | null>(null);

  async function start(): Promise<void> {
    if (busy || agent.trim() === "") return;
    setBusy(true);
    setFailed(null);
    try {
      const session = await live.api.send<Session>("POST", "/sessions", {
        agent: agent.trim(),
        cwd: cwd.trim() === "" ? null : cwd.trim(),
        prompt: prompt.trim() === "" ? null : prompt,
      });
      live.inbox.sessionUpdated(session);
      live.changed();
      onDone();
      go({ page: "sessions", session: session.id });
    } catch (error) {
      setFailed(words.sessionsStartFailed(error instanceof CallError ? plain(error.message, 200) : ""));
      setBusy(false);
    }
  }

  return (
    <form
      class="start"
      onSubmit={(event) => {
        event.preventDefault();
        void start();
      }}
    >
      <label for="sa">{words.sessionsStartAgent}</label>
      <input class="field" id="sa" required autocomplete="off" aria-describedby="sah" value={agent} onInput={(event) => setAgent(event.currentTarget.value)} />
      <p class="hint" id="sah">
        {words.sessionsStartAgentHint}
      </p>
      <label for="sc">{words.sessionsStartCwd}</label>
      <input class="field" id="sc" autocomplete="off" value={cwd} onInput={(event) => setCwd(event.currentTarget.value)} />
      <label for="sp">{words.sessionsStartPrompt}</label>
      <textarea class="field" id="sp" rows={2} value={prompt} onInput={(event) => setPrompt(event.currentTarget.value)} />
      {failed !== null && (
        <p class="hint bad" role="alert">
          {failed}
        </p>
      )}
      <button class="btn primary" type="submit" aria-disabled={busy || undefined}>
        {busy ? words.sessionsStarting : words.sessionsStartNow}
      </button>
    </form>
  );
}
