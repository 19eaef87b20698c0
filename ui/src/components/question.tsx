// One question of a card: its words, its controls, what is asked of the answer, and what was refused.
import type { Ask, Question as Asked } from "../api/types.ts";
import { answered, choose, entryOf, hasDefault, takesSelection, takesText, write, type Entries, type Entry } from "../model/answers.ts";
import { offset } from "../model/time.ts";
import { plain } from "../model/visible.ts";
import * as words from "../words.ts";
import { Choices } from "./choices.tsx";
import { Field, shape } from "./field.tsx";
import { Icon } from "./icon.tsx";
import { Long, Short } from "./text.tsx";

interface Props {
  ask: Ask;
  question: Asked;
  entries: Entries;
  disabled: boolean;
  error: string | undefined;
  /** Who sees what is entered, for the warning at a secret. */
  audience: string;
  onPut(entry: Entry): void;
}

export function Question({ ask, question, entries, disabled, error, audience, onPut }: Props) {
  const entry = entryOf(question, entries);
  const selects = takesSelection(question);
  const writes = takesText(question);
  const base = `q-${ask.id}-${ask.questions.indexOf(question)}`;
  const spoken = plain(question.title ?? question.prompt, 120);
  // The card's heading has said it already; only assistive technology hears it again.
  const said = question.prompt.trim() === ask.message.trim();
  const notes = hints(ask, question, entry, entries);
  const ids = [error === undefined ? null : `${base}-e`, notes.length > 0 ? `${base}-h` : null, question.secret ? `${base}-s` : null].filter((id) => id !== null);
  const describedBy = ids.length === 0 ? undefined : ids.join(" ");
  const fieldId = `${base}-f`;

  const title = question.title !== null && question.title !== "" && question.title !== question.prompt ? question.title : null;
  const heading = (
    <>
      {title !== null &&
        (said ? (
          <Short value={title} most={200} />
        ) : (
          <small>
            <Short value={title} most={200} />
          </small>
        ))}
      <span class={said ? "hide" : ""}>
        <Long value={question.prompt} />
      </span>
      {question.required && ask.allows_partial && (
        <>
          {" "}
          <span class="needed">{words.questionRequired}</span>
        </>
      )}
    </>
  );
  const clear = answered(entry) && !disabled && (
    <button class="btn plain clear" type="button" aria-label={words.cardClearOf(spoken)} onClick={() => onPut({ selected: [], text: "" })}>
      {words.cardClear}
    </button>
  );
  const below = (
    <>
      {/* The line stays where it is empty, so that nothing jumps when "Clear" appears in it. */}
      <p class="hint" id={`${base}-h`}>
        {notes.length > 0 ? notes.join(" ") : "\u00a0"}
      </p>
      {question.constraints.pattern !== undefined && (
        <p class="hint">
          {words.questionPattern}
          <code>
            <Short value={question.constraints.pattern} most={200} />
          </code>
        </p>
      )}
      {question.secret && (
        <p class="hint warn" id={`${base}-s`}>
          <Icon name="warn" /> {words.questionSecret(audience)}
        </p>
      )}
      {error !== undefined && (
        <p class="hint bad" id={`${base}-e`}>
          <Short value={error} most={500} />
        </p>
      )}
      {clear}
    </>
  );

  const field = (label: string | undefined) => (
    <Field
      question={question}
      id={fieldId}
      value={entry.text}
      label={label}
      describedBy={describedBy}
      invalid={error !== undefined}
      onWrite={(text) => onPut(write(ask, entry, text))}
    />
  );

  if (!selects) {
    const flat = (said && title === null && !(question.required && ask.allows_partial)) || (title === null && question.prompt === "");
    return (
      <fieldset class="q plain" data-q={question.id} disabled={disabled}>
        <label class={`label ${flat ? "hide" : ""}`} for={fieldId}>
          {heading}
        </label>
        {field(undefined)}
        {below}
      </fieldset>
    );
  }
  const quiet = said && !(question.required && ask.allows_partial) && (title === null || ask.questions.length === 1);
  return (
    <fieldset class="q" data-q={question.id} data-selects="" disabled={disabled} aria-describedby={describedBy}>
      <legend class={quiet ? "hide" : ""}>{heading}</legend>
      <Choices
        question={question}
        name={base}
        selected={entry.selected}
        describedBy={describedBy}
        invalid={error !== undefined}
        onChoose={(value, on) => onPut(choose(ask, question, entry, value, on))}
      />
      {writes && <div class="words">{field(words.questionOwnWords(spoken))}</div>}
      {below}
    </fieldset>
  );
}

/** The quiet lines under the controls. */
function hints(ask: Ask, question: Asked, entry: Entry, entries: Entries): string[] {
  const lines: string[] = [];
  const selects = takesSelection(question);
  if (ask.source === "permission") lines.push(words.questionPermissionHint);
  if (question.kind === "multi" && selects) lines.push(words.questionItems(question.constraints.minItems, question.constraints.maxItems));
  if (!selects) {
    const demand = words.questionHint(question);
    if (demand !== "") lines.push(demand);
    if (shape(question, entry.text) === "date-time") lines.push(words.questionZone(offset(new Date())));
  }
  if (selects && takesText(question)) {
    const both = entry.selected.length > 0 && entry.text.trim() !== "";
    if (!ask.allows_text_with_selection) lines.push(words.questionInstead);
    else if (both) lines.push(words.questionBeside(question.companion === "adds", ask.origin.holder));
  }
  if (entries[question.id] === undefined && hasDefault(question)) lines.push(words.questionPrefilled);
  return lines.map((line) => (/[.?]$/.test(line) || lines.length === 1 ? line : `${line}.`));
}
