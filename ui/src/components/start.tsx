// Starts a session with one of the agents of the configuration.
import { useEffect, useState } from "preact/hooks";
import { told } from "../api/client.ts";
import type { Agent, Session } from "../api/types.ts";
import type { Live } from "../state/live.ts";
import { go } from "../state/router.ts";
import * as words from "../words.ts";
import { Failed } from "./failed.tsx";
import { submits } from "./submits.ts";

export function Start({ live, onDone }: { live: Live; onDone(): void }) {
  const [agents, setAgents] = useState<Agent[] | null>(null);
  const [id, setId] = useState("");
  const [cwd, setCwd] = useState("");
  const [prompt, setPrompt] = useState("");
  const [busy, setBusy] = useState(false);
  const [failed, setFailed] = useState<string | null>(null);

  const fail = (error: unknown): void => setFailed(words.sessionsStartFailed(told(error)));
  useEffect(() => {
    live.api.get<{ agents: Agent[] }>("/agents").then((list) => setAgents(list.agents), fail);
  }, [live]);
  const agent = agents?.find((one) => one.id === id) ?? agents?.[0];

  async function start(): Promise<void> {
    if (busy || agent === undefined) return;
    setBusy(true);
    setFailed(null);
    try {
      const session = await live.api.send<Session>("POST", "/sessions", {
        agent: agent.id,
        cwd: cwd.trim() === "" ? null : cwd.trim(),
        prompt: prompt.trim() === "" ? null : prompt,
      });
      live.inbox.sessionUpdated(session);
      live.changed();
      onDone();
      go({ page: "sessions", session: session.id });
    } catch (error) {
      fail(error);
      setBusy(false);
    }
  }

  return (
    <form
      class="start"
      onSubmit={submits(start)}
    >
      {agent === undefined ? (
        failed === null && <p class="hint">{agents === null ? words.settingsLoading : words.sessionsStartNone}</p>
      ) : (
        <>
          <label for="sa">{words.sessionsAgent}</label>
          <select class="field" id="sa" value={agent.id} onChange={(event) => setId(event.currentTarget.value)}>
            {agents?.map((one) => (
              <option key={one.id}>{one.id}</option>
            ))}
          </select>
          <label for="sc">{words.sessionsStartCwd(agent.cwd !== null)}</label>
          <input
            class="field"
            id="sc"
            autocomplete="off"
            required={agent.cwd === null}
            placeholder={agent.cwd ?? undefined}
            value={cwd}
            onInput={(event) => setCwd(event.currentTarget.value)}
          />
          <label for="sp">{words.sessionsStartPrompt}</label>
          <textarea class="field" id="sp" rows={2} value={prompt} onInput={(event) => setPrompt(event.currentTarget.value)} />
          <button class="btn primary" type="submit" aria-disabled={busy || undefined}>
            {busy ? words.sessionsStarting : words.sessionsStartNow}
          </button>
        </>
      )}
      <Failed text={failed} />
    </form>
  );
}
