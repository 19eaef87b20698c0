// Text that strangers wrote: isolated in its direction, unseen characters as marks, cut where it is long, and saying so (S26).
import { useState } from "preact/hooks";
import { count, cut, pieces } from "../model/visible.ts";
import * as words from "../words.ts";

/** How much one press on "show more" adds, in characters. */
const STEP = 20_000;

export function Text({ value }: { value: string }) {
  return (
    <bdi>
      {pieces(value).map((piece) =>
        piece.mark ? (
          <span class="unseen">
            <span class="hide">{words.textUnseen} </span>
            {piece.text}
          </span>
        ) : (
          piece.text
        ),
      )}
    </bdi>
  );
}

/** A name or other short claim: at most `most` characters, the rest counted. */
export function Short({ value, most = 80 }: { value: string; most?: number }) {
  const { head, hidden } = cut(value, most);
  return (
    <>
      <Text value={head} />
      {hidden > 0 && <span class="more">… ({words.inboxCharacters(count(hidden))})</span>}
    </>
  );
}

/** Long text: the beginning, what is hidden in words, and a button for the rest. */
export function Long({ value, most = 2_000 }: { value: string; most?: number }) {
  const [limit, setLimit] = useState(most);
  const { head, hidden } = cut(value, limit);
  const size = count(hidden);
  return (
    <>
      <Text value={head} />
      {hidden > 0 && (
        <span class="more">
          … {words.textCut(size)}{" "}
          <button class="btn plain" type="button" onClick={() => setLimit(limit + STEP)}>
            {hidden <= STEP ? words.textShowRest(size) : words.textShowMore(size)}
          </button>
        </span>
      )}
    </>
  );
}
