// Access tokens: made, shown once, listed, revoked.
import { useEffect, useRef, useState } from "preact/hooks";
import { told } from "../api/client.ts";
import type { Scope, Token } from "../api/types.ts";
import { clock } from "../model/time.ts";
import { plain } from "../model/visible.ts";
import type { Live } from "../state/live.ts";
import * as words from "../words.ts";
import { Failed } from "./failed.tsx";
import { submits } from "./submits.ts";
import { Copy } from "./copy.tsx";
import { Short } from "./text.tsx";

const SCOPES: Scope[] = ["viewer", "operator", "admin", "holder"];

export function Tokens({ live }: { live: Live }) {
  const [tokens, setTokens] = useState<Token[] | null>(null);
  const [made, setMade] = useState<string | null>(null);
  const [revoking, setRevoking] = useState<string | null>(null);
  const [failed, setFailed] = useState<string | null>(null);
  const [scope, setScope] = useState<Scope>("operator");
  const name = useRef<HTMLInputElement>(null);
  const owner = useRef<HTMLInputElement>(null);

  const fail = (error: unknown): void => setFailed(words.settingsFailed(told(error)));
  const load = async (): Promise<void> => setTokens((await live.api.get<{ tokens: Token[] }>("/tokens")).tokens);
  useEffect(() => void load().catch(fail), [live]);

  async function create(): Promise<void> {
    setFailed(null);
    const given = (field: HTMLInputElement | null): string | null => field?.value.trim() || null;
    try {
      const created = await live.api.send<{ id: string; token: string }>("POST", "/tokens", {
        scope,
        name: given(name.current),
        owner: given(owner.current),
      });
      setMade(created.token);
      if (name.current !== null) name.current.value = "";
      await load();
    } catch (error) {
      fail(error);
    }
  }

  async function revoke(token: Token): Promise<void> {
    if (revoking !== token.id) {
      setRevoking(token.id);
      return;
    }
    setRevoking(null);
    setFailed(null);
    await live.api.send("DELETE", `/tokens/${encodeURIComponent(token.id)}`).then(load).catch(fail);
  }

  return (
    <>
      <form
        class="make"
        onSubmit={submits(create)}
      >
        <h2>{words.accessCreate}</h2>
        <label for="ts">{words.accessScope}</label>
        <select class="field" id="ts" value={scope} onChange={(event) => setScope(event.currentTarget.value as Scope)}>
          {SCOPES.map((one) => (
            <option value={one}>{words.accessScopes[one]}</option>
          ))}
        </select>
        <label for="tn">{words.accessName}</label>
        <input class="field" id="tn" ref={name} maxLength={128} autocomplete="off" placeholder={words.questionOptional} />
        <label for="to">{words.accessOwner}</label>
        <input class="field" id="to" ref={owner} maxLength={128} autocomplete="off" placeholder={words.questionOptional} />
        <button class="btn primary" type="submit">
          {words.accessMake}
        </button>
      </form>
      <div role="status">
        {made !== null && (
          <div class="note made">
            <div>
              <b>{words.accessShownOnce}</b>
              <code>{made}</code>
            </div>
            <Copy text={made} label={words.accessCopy} />
            <button class="btn plain small" type="button" onClick={() => setMade(null)}>
              {words.accessDone}
            </button>
          </div>
        )}
      </div>
      <Failed text={failed} />
      {tokens === null && failed === null && <p class="hint">{words.settingsLoading}</p>}
      {tokens !== null && (
        <div class="scroll" tabIndex={0} role="region" aria-label={words.accessList}>
          <table>
            <thead>
              <tr>
                {words.accessColumns.map((column) => (
                  column === "" ? <td /> : <th scope="col" class={column === words.accessColumns[1] ? "l" : ""}>{column}</th>
                ))}
              </tr>
            </thead>
            <tbody>
              {tokens.map((token) => (
                <tr key={token.id}>
                  <th scope="row">
                    <Short value={token.name} most={60} />
                    <small>
                      {token.page_session && words.accessPageSession}
                      {token.owner !== null && words.accessOfOwner(plain(token.owner, 60))}
                    </small>
                  </th>
                  <td class="l">{token.scope}</td>
                  <td>{clock(Date.parse(token.created_at), live.now(), false)}</td>
                  <td>{token.expires_at === null ? words.accessNever : clock(Date.parse(token.expires_at), live.now(), false)}</td>
                  <td>
                    <button
                      class={`btn small ${revoking === token.id ? "danger" : "plain"}`}
                      type="button"
                      aria-label={revoking === token.id ? undefined : words.accessRevokeOf(plain(token.name, 60))}
                      onClick={() => void revoke(token)}
                    >
                      {revoking === token.id ? words.accessRevokeSure : words.accessRevoke}
                    </button>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </>
  );
}
