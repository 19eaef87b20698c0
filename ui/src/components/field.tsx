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
  const common = {
    id,
    "aria-label": label,
    "aria-describedby": describedBy,
    "aria-invalid": invalid || undefined,
    "aria-required": question.required || undefined,
    autocomplete: "off",
  };
  const beside = takesSelection(question);
  const placeholder = beside ? words.questionOwnWordsPlaceholder : question.required ? undefined : words.questionOptional;
  const is = shape(question, value);
  switch (is) {
    case "lines":
      return (
        <textarea {...common} class="field" rows={2} placeholder={placeholder} value={value} onInput={(event) => onWrite(event.currentTarget.value)} />
      );
    case "number":
      return (
        <input
          {...common}
          class="field short num"
          type="text"
          inputMode={question.kind === "integer" ? "numeric" : "decimal"}
          value={value}
          onInput={(event) => onWrite(event.currentTarget.value)}
        />
      );
    case "date":
      return <input {...common} class="field date num" type="date" value={value} onInput={(event) => onWrite(event.currentTarget.value)} />;
    case "date-time":
      return (
        <input
          {...common}
          class="field date num"
          type="datetime-local"
          value={toLocalInput(value) ?? ""}
          onInput={(event) => onWrite(fromLocalInput(event.currentTarget.value))}
        />
      );
    case "password":
      return (
        <input
          {...common}
          class="field"
          type="password"
          autocomplete="new-password"
          spellcheck={false}
          placeholder={beside ? placeholder : undefined}
          value={value}
          onInput={(event) => onWrite(event.currentTarget.value)}
        />
      );
    case "line": {
      const { format } = question.constraints;
      const inputMode = format === "email" ? "email" : format === "uri" ? "url" : "text";
      return (
        <input
          {...common}
          class="field"
          type="text"
          inputMode={inputMode}
          placeholder={placeholder}
          value={value}
          onInput={(event) => onWrite(event.currentTarget.value)}
        />
      );
    }
  }
}
