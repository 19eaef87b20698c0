// Signing in: by the link that `up` printed, after a click (S11), or with a pasted code or token.
import { useState } from "preact/hooks";
import { CallError } from "../api/client.ts";
import { Icon } from "../components/icon.tsx";
import { linkSecret, signIn } from "../state/access.ts";
import { useCell } from "../state/cell.ts";
import { plain } from "../model/visible.ts";
import { submits } from "../components/submits.ts";
import * as words from "../words.ts";

const NAME = "handraise.name";

export function SignIn({ because }: { because: string | null }) {
  const fromLink = useCell(linkSecret);
  const [pasted, setPasted] = useState("");
  const [name, setName] = useState(localStorage.getItem(NAME) ?? "");
  const [busy, setBusy] = useState(false);
  const [refused, setRefused] = useState(because);

  async function enter(): Promise<void> {
    const secret = fromLink ?? pasted.trim();
    if (secret === "" || busy) return;
    setBusy(true);
    try {
      await signIn(secret, name.trim());
      localStorage.setItem(NAME, name.trim());
    } catch (error) {
      setRefused(reason(error, fromLink !== null));
      // A link works once; what is left is to paste something else.
      if (error instanceof CallError && error.status === 401) linkSecret.set(null);
      setBusy(false);
    }
  }

  return (
    <div class="sign">
      <main id="main">
        <p class="brand">
          <Icon name="hand" />
          {words.product}
        </p>
        <h1>{words.signInTitle}</h1>
        {fromLink === null ? (
          <p class="lead">
            {words.signInLead[0]}
            <code>{words.signInLead[1]}</code>
            {words.signInLead[2]}
          </p>
        ) : (
          <p class="lead">{words.signInByLink}</p>
        )}
        {refused !== null && (
          <div class="note warn" role="alert">
            <span>{refused}</span>
          </div>
        )}
        <form
          onSubmit={submits(enter)}
        >
          {fromLink === null && (
            <>
              <label for="k">
                <b>{words.signInLabel}</b>
              </label>
              <input
                class="field"
                id="k"
                type="password"
                autocomplete="off"
                spellcheck={false}
                aria-describedby="h"
                required
                value={pasted}
                onInput={(event) => setPasted(event.currentTarget.value)}
              />
            </>
          )}
          <label for="n">
            <b>{words.signInName}</b>
          </label>
          <input
            class="field"
            id="n"
            autocomplete="nickname"
            maxLength={60}
            aria-describedby="nh"
            placeholder={words.questionOptional}
            value={name}
            onInput={(event) => setName(event.currentTarget.value)}
          />
          <p class="hint" id="nh">
            {words.signInNameHint}
          </p>
          <button class="btn primary" type="submit" aria-disabled={busy || undefined}>
            {busy ? words.signInSubmitting : words.signInSubmit}
          </button>
          <p class="hint" id="h">
            {words.signInLost[0]}
            <code>{words.signInLost[1]}</code>
          </p>
        </form>
      </main>
    </div>
  );
}

function reason(error: unknown, byLink: boolean): string {
  const { status, message } = error instanceof CallError ? error : { status: 0, message: "" };
  if (status === 0) return words.signInUnreachable;
  if (status === 401) return byLink ? words.signInUsed : words.signInWrong;
  if (status === 429) return words.signInTooMany;
  return message === words.signInHolder ? message : words.signInFailed(plain(message, 200));
}
