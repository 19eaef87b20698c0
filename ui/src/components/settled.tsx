// How an ask ended: one note, and the answers as facts.
import type { Answer, Ask, Settlement } from "../api/types.ts";
import type { End, Submission } from "../model/phase.ts";
import { clock, fine } from "../model/time.ts";
import { plain } from "../model/visible.ts";
import type { Live } from "../state/live.ts";
import * as words from "../words.ts";
import { choicesOf } from "./choices.tsx";
import { asker } from "./from.tsx";
import type { IconName } from "./icon.tsx";
import { Note } from "./note.tsx";
import { Long } from "./text.tsx";

interface Props {
  live: Live;
  ask: Ask;
  end: End;
  settlement: Settlement;
  submission: Submission | undefined;
}

const ICONS: Record<End, IconName> = {
  mine: "check",
  "mine-skipped": "x",
  other: "check",
  "other-skipped": "x",
  reported: "check",
  expired: "clock",
  withdrawn: "cut",
  gone: "cut",
  recorded: "clock",
  system: "cut",
};

export function Settled(props: Props) {
  const { ask, end, settlement } = props;
  const answered = settlement.outcome === "accept" && (end === "mine" || settlement.answers.length > 0);
  const others = ["other", "other-skipped", "reported"].includes(end);
  return (
    <>
      <Note icon={ICONS[end]} {...sentence(props)} />
      <dl class="facts">
        {answered && <Facts ask={ask} answers={settlement.answers} />}
        {others && (
          <>
            <dt>{words.endProvenance}</dt>
            <dd>{words.endProvenances[settlement.provenance]}</dd>
          </>
        )}
        {settlement.reason !== null && settlement.reason !== "" && !["mine", "mine-skipped", "gone", "recorded"].includes(end) && (
          <>
            <dt>{words.endReason}</dt>
            <dd>
              <Long value={settlement.reason} most={500} />
            </dd>
          </>
        )}
      </dl>
    </>
  );
}

function sentence({ live, ask, end, settlement, submission }: Props): { title: string; text: string } {
  const name = asker(ask);
  const kind = ask.origin.holder;
  const now = live.now();
  const time = clock(Date.parse(settlement.at), now, true);
  const lost = submission?.is === "lost" ? submission.chose : null;
  const notSent = lost === null ? "" : words.endYoursNotSent(lost);
  const who = settlement.by === null ? words.endAnotherOperator : plain(settlement.by, 60);
  switch (end) {
    case "mine":
      return words.endMine(kind, time, words.endInInbox, ask.parked_until !== null);
    case "mine-skipped":
      return words.endSkipped(kind, settlement.reason === null || settlement.reason === "" ? null : plain(settlement.reason, 500));
    case "other":
    case "other-skipped":
      return { title: words.endOther(who), text: words.endOtherText(end !== "other", inWords(ask, settlement.answers), time) + notSent };
    case "reported": {
      const reported = words.endReported(name);
      return { title: reported.title, text: reported.text(settlement.outcome) + notSent };
    }
    case "expired": {
      const span = Date.parse(settlement.at) - Date.parse(ask.opened_at);
      return { title: words.endExpired(fine(span)), text: words.endExpiredText(ask.on_deadline, clock(Date.parse(settlement.at), now, false)) };
    }
    case "withdrawn":
    case "gone":
      return words.endWithdrawn(name, end === "gone", time);
    case "recorded":
      return words.endRecorded(kind);
    case "system":
      return words.endSystem(settlement.outcome, time);
  }
}

/** One answer to one question in quotes, for a sentence; null where there is more to say than fits. */
export function inWords(ask: Ask, answers: readonly Answer[]): string | null {
  const [answer] = answers;
  if (answers.length !== 1 || answer === undefined) return null;
  return `“${plain(said(ask, answer), 120)}”`;
}

function said(ask: Ask, answer: Answer): string {
  const question = ask.questions.find((one) => one.id === answer.question_id);
  const choices = question === undefined ? [] : choicesOf(question);
  const picked = answer.selected_options.map((value) => choices.find((choice) => choice.value === value)?.label ?? value).join(", ");
  if (answer.custom_text === "") return picked;
  return picked === "" ? answer.custom_text : words.endWithWords(picked, answer.custom_text);
}

function Facts({ ask, answers }: { ask: Ask; answers: readonly Answer[] }) {
  const given = new Set(answers.map((answer) => answer.question_id));
  const left = ask.questions.filter((question) => !given.has(question.id)).map((question) => plain(question.title ?? question.prompt, 60));
  const named = (id: string): string => {
    const question = ask.questions.find((one) => one.id === id);
    return plain(question?.title ?? (ask.questions.length === 1 ? words.questionAnswer : (question?.prompt ?? id)), 60);
  };
  return (
    <>
      {answers.map((answer) => (
        <>
          <dt>{named(answer.question_id)}</dt>
          <dd>
            <Long value={said(ask, answer)} most={500} />
          </dd>
        </>
      ))}
      {left.length > 0 && (
        <>
          <dt>{words.endLeftOut}</dt>
          <dd>{left.join(", ")}</dd>
        </>
      )}
    </>
  );
}
