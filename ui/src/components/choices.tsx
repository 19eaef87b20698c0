// The choices of a question as radio buttons or checkboxes, with descriptions, previews, number keys, and a search where many.
import { useState } from "preact/hooks";
import type { Choice, Question } from "../api/types.ts";
import { found } from "../model/groups.ts";
import { plain } from "../model/visible.ts";
import * as words from "../words.ts";
import { Long, Short, Text } from "./text.tsx";

/** More choices than this get a search field. */
const MANY = 20;
/** How many are drawn at first, and more with each press. */
const DRAWN = 40;

interface Props {
  question: Question;
  name: string;
  selected: string[];
  describedBy: string | undefined;
  invalid: boolean;
  onChoose(value: string, on: boolean): void;
}

export function choicesOf(question: Question): Choice[] {
  if (question.kind !== "boolean") return question.choices;
  const bare = { description: null, preview: null };
  return [
    { value: "true", label: words.questionYes, ...bare },
    { value: "false", label: words.questionNo, ...bare },
  ];
}

export function Choices(props: Props) {
  const { question, selected } = props;
  const all = choicesOf(question);
  const [search, setSearch] = useState("");
  const [drawn, setDrawn] = useState(DRAWN);
  const [focused, setFocused] = useState<string | null>(null);

  const many = all.length > MANY;
  const fitting = all.filter((choice) => found(`${choice.label}\n${choice.value}\n${choice.description ?? ""}`, search.trim()));
  const shown = fitting.slice(0, drawn);
  const chosen = all.filter((choice) => selected.includes(choice.value));
  const hiddenChosen = many ? chosen.filter((choice) => !shown.includes(choice)) : [];

  const withPreview = all.some((choice) => choice.preview !== null);
  // Of the focused choice, else of the chosen one; another's preview beside a chosen one would mislead.
  const previewed = all.find((choice) => choice.value === focused) ?? chosen[0] ?? all.find((choice) => choice.preview !== null);

  const list = (
    <div
      class={`choices ${question.kind === "boolean" ? "two" : ""} ${many ? "many" : ""}`}
      onFocusIn={(event) => setFocused(event.target instanceof HTMLInputElement ? event.target.value : null)}
    >
      {shown.map((choice, index) => (
        <Row {...props} choice={choice} digit={question.kind === "boolean" ? null : index < 9 ? index + 1 : null} key={choice.value} />
      ))}
      {shown.length === 0 && <p class="hint inset">{words.questionNoChoice}</p>}
      {fitting.length > shown.length && (
        <button class="btn plain inset" type="button" onClick={() => setDrawn(drawn + 5 * DRAWN)}>
          {words.questionShown(shown.length, fitting.length)} · {words.inboxShowAll}
        </button>
      )}
    </div>
  );

  return (
    <>
      {many && (
        <div class="search">
          <input
            class="field"
            type="search"
            aria-label={words.questionFindChoice}
            placeholder={words.questionFindChoice}
            value={search}
            onInput={(event) => {
              setSearch(event.currentTarget.value);
              setDrawn(DRAWN);
            }}
          />
          <p class="hint" role="status">
            {words.questionShown(fitting.length, all.length)}
            {hiddenChosen.length > 0 && ` · ${words.questionChosen(hiddenChosen.map((choice) => plain(choice.label, 60)).join(", "))}`}
          </p>
        </div>
      )}
      {withPreview ? (
        <div class="peek">
          {list}
          {previewed !== undefined && (
            <pre tabIndex={0} role="region" aria-label={`${words.questionPreview(plain(previewed.label, 60))}, ${plain(question.title ?? question.prompt, 60)}`}>
              <b>
                <Short value={previewed.label} />
              </b>
              {"\n"}
              <Long value={previewed.preview ?? words.questionNoPreview} />
            </pre>
          )}
        </div>
      ) : (
        list
      )}
    </>
  );
}

function Row({ question, name, selected, describedBy, invalid, onChoose, choice, digit }: Props & { choice: Choice; digit: number | null }) {
  const multi = question.kind === "multi";
  return (
    <label class="choice">
      <input
        type={multi ? "checkbox" : "radio"}
        name={name}
        value={choice.value}
        checked={selected.includes(choice.value)}
        aria-describedby={describedBy}
        aria-invalid={invalid || undefined}
        data-digit={digit ?? undefined}
        onChange={(event) => onChoose(choice.value, event.currentTarget.checked)}
      />
      <span>
        {question.kind === "boolean" ? (
          choice.label
        ) : (
          <b>
            <Short value={choice.label} most={300} />
          </b>
        )}
        {choice.description !== null && choice.description !== "" && (
          <small>
            <Short value={choice.description} most={1_000} />
          </small>
        )}
        {question.kind !== "boolean" && choice.value !== choice.label && (
          <small class="sends">
            {words.questionSends}
            <code>
              <Text value={choice.value.slice(0, 200)} />
            </code>
          </small>
        )}
      </span>
      {digit !== null && <kbd aria-hidden="true">{digit}</kbd>}
    </label>
  );
}
