// One entry of a transcript that is no card.
import { coarse, clock } from "../model/time.ts";
import type { ToolLine, Turn as Entry } from "../model/transcript.ts";
import * as words from "../words.ts";
import { Icon, type IconName } from "./icon.tsx";
import { Markdown } from "./markdown.tsx";
import { Long, Short } from "./text.tsx";

const TOOLS: Record<ToolLine["status"], { icon: IconName; kind: string }> = {
  running: { icon: "arc", kind: "on spin" },
  done: { icon: "check", kind: "" },
  failed: { icon: "x", kind: "bad" },
  waiting: { icon: "hand", kind: "on" },
};

export function Turn({ turn }: { turn: Exclude<Entry, { is: "ask" }> }) {
  switch (turn.is) {
    case "said": {
      const who = turn.thought ? words.sessionsThought : turn.by === "operator" ? words.sessionsYou : words.sessionsAgent;
      return (
        <section class={`say ${turn.by === "operator" ? "me" : ""} ${turn.thought ? "thought" : ""}`}>
          <h2>
            {who} <time dateTime={turn.at}>{clock(Date.parse(turn.at), Date.now(), false)}</time>
          </h2>
          {turn.by === "operator" ? (
            <p class="body">
              <Long value={turn.text} most={5_000} />
            </p>
          ) : (
            <Markdown text={turn.text} />
          )}
        </section>
      );
    }
    case "tools":
      return (
        <ul class="tools" aria-label={words.sessionsTools}>
          {turn.tools.map((tool) => (
            <li key={tool.key}>
              <Icon name={TOOLS[tool.status].icon} kind={TOOLS[tool.status].kind} label={words.sessionsToolStates[tool.status]} />
              <span>
                <Short value={tool.text} most={300} />
                {tool.status === "waiting" && (
                  <>
                    {", "}
                    <b>{words.sessionsToolStates.waiting}</b>
                  </>
                )}
              </span>
              <small class="num">{tool.ended === null ? "" : took(tool.ended - tool.began)}</small>
            </li>
          ))}
        </ul>
      );
    case "plan":
      return (
        <section class="say">
          <h2>{words.sessionsPlan}</h2>
          {turn.entries.length === 0 ? (
            <Markdown text={turn.text} />
          ) : (
            <ul>
              {turn.entries.map((entry) => (
                <li>
                  <Short value={entry.text} most={500} />
                  {entry.status !== "" && (
                    <small>
                      {" · "}
                      <Short value={entry.status.replaceAll("_", " ")} most={40} />
                    </small>
                  )}
                </li>
              ))}
            </ul>
          )}
        </section>
      );
    case "ended":
      return (
        <p class="hint">
          <Short value={words.sessionsTurnEnded(turn.reason)} />
        </p>
      );
    case "notice":
      return (
        <p class="hint">
          <Long value={turn.text} most={500} />
        </p>
      );
  }
}

function took(ms: number): string {
  return ms < 1_000 ? `${Math.max(0, ms)} ms` : ms < 60_000 ? `${(ms / 1_000).toFixed(1)} s` : coarse(ms);
}
