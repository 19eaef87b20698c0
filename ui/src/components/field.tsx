// The control of a question that is answered in words, a number or a date.
import type { Question } from "../api/types.ts";
import { fromLocalInput, toLocalInput } from "../model/time.ts";
import { takesSelection } from "../model/answers.ts";
import * as words from "../words.ts";

interface Props {
  question: Question;
  id: string;
  value: string;
  label: string | undefined;
  describedBy: string | undefined;
  invalid: boolean;
  onWrite(text: string): void;
}

/** What kind of control suits the question. */
export function shape(question: Question, value: string): "password" | "number" | "date" | "date-time" | "line" | "lines" {
  const { kind, constraints, secret } = question;
  if (secret) return "password";
  if (kind === "number" || kind === "integer") return "number";
  if (takesSelection(question)) return "line";
  if (constraints.format === "date" && (value === "" || /^\d{4}-\d\d-\d\d$/.test(value))) return "date";
  if (constraints.format === "date-time" && (value === "" || toLocalInput(value) !== null)) return "date-time";
  if (constraints.format === "email" || constraints.format === "uri") return "line";
  return constraints.maxLength !== undefined && constraints.maxLength <= 80 && !value.includes("\n") ? "line" : "lines";
}

export function Field(props: Props) {
  const { question, id, value, label, describedBy, invalid, onWrite } = props;
  const beside = takesSelection(question);
  const is = shape(question, value);
  const common = {
    id,
    "aria-label": label,
    "aria-describedby": describedBy,
    "aria-invalid": invalid || undefined,
    "aria-required": question.required || undefined,
    autocomplete: is === "password" ? "new-password" : "off",
    placeholder: beside ? words.questionOwnWordsPlaceholder : question.required || !is.startsWith("line") ? undefined : words.questionOptional,
    value: is === "date-time" ? (toLocalInput(value) ?? "") : value,
    onInput: ({ currentTarget: { value: text } }: { currentTarget: { value: string } }) => onWrite(is === "date-time" ? fromLocalInput(text) : text),
  };
  if (is === "lines") return <textarea {...common} class="field" rows={2} />;
  return (
    <input
      {...common}
      class={`field ${is === "number" ? "short num" : is.startsWith("date") ? "date num" : ""}`}
      type={(is === "date-time" ? "datetime-local" : is === "date" || is === "password" ? is : "text") as "text"}
      inputMode={inputMode(question)}
      spellcheck={is === "password" ? false : undefined}
    />
  );
}

function inputMode({ kind, constraints: { format } }: Question) {
  if (kind === "integer") return "numeric";
  if (kind === "number") return "decimal";
  return format === "email" ? "email" : format === "uri" ? "url" : undefined;
}
