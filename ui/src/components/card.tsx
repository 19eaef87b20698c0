// One ask: who, what, until when; its questions; and what became of it. The same card stands in the inbox and in a transcript.
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Answer, Ask } from "../api/types.ts";
import { counts, lacking, takesSelection, toAnswers } from "../model/answers.ts";
import { isTheirs, phase } from "../model/phase.ts";
import { clock } from "../model/time.ts";
import { may } from "../state/access.ts";
import { useCell } from "../state/cell.ts";
import { dropDraft, entriesOf, putEntry } from "../state/entries.ts";
import { useGuard } from "../state/guarded.ts";
import type { Live } from "../state/live.ts";
import { usePainted } from "../state/painted.ts";
import { reported, useSeen } from "../state/seen.ts";
import { dismiss, submissionOf, submissions, submit } from "../state/submissions.ts";
import * as words from "../words.ts";
import { Confirm, isCut } from "./confirm.tsx";
import { Countdown } from "./countdown.tsx";
import { Foot } from "./foot.tsx";
import { asker, From } from "./from.tsx";
import { destinationOf, Link } from "./link.tsx";
import { Message } from "./message.tsx";
import { CardNotice } from "./notice.tsx";
import { plain } from "../model/visible.ts";
import { Question } from "./question.tsx";
import { inWords, Settled } from "./settled.tsx";
import { digit, shortcut } from "./shortcuts.ts";

interface Props {
  live: Live;
  ask: Ask;
  /** Inside a transcript: boxed, with a smaller heading. */
  boxed?: boolean;
  /** The person has just opened it: the heading takes the focus. */
  focus?: boolean;
  /** One of several that are answered by one button, which is not on the card. */
  together?: boolean;
  heading: string;
}

export function Card({ live, ask, boxed = false, focus = false, together = false, heading }: Props) {
  const root = useRef<HTMLElement>(null);
  const link = useCell(live.link);
  const draft = useCell(entriesOf(ask));
  useCell(submissions);
  const submission = submissionOf(ask.id);
  const online = link.is !== "lost";
  const mayAnswer = may(live.login, "operator") && isTheirs(ask, live.login.owner);
  const now = phase(ask, submission, { me: live.login.name, mayAnswer, online });
  const notice = now.is === "open" ? now.notice : null;

  const [fixed, setFixed] = useState<ReadonlySet<string>>(new Set());
  const [skipping, setSkipping] = useState(false);
  const [said, setSaid] = useState("");
  /** Submit was pressed while something was lacking: from then on each such question says so. */
  const [tried, setTried] = useState(false);

  const content = [ask.digest, ask.state, now.is, notice, submission?.is].join();
  const guard = useGuard(root, content);
  const painted = usePainted(root, ask.id);
  useSeen(live, ask, root);

  const open = now.is === "open";
  const risk = ask.source === "confirm";
  const lack = ask.mode === "url" ? [] : lacking(ask, draft.entries, painted).filter((question) => !risk || question !== soleBoolean(ask));
  const details = submission?.is === "invalid" ? submission.details : [];
  const errorOf = (id: string): string | undefined => {
    if (tried && lack.some((question) => question.id === id)) return words.questionMissing;
    const own = details.filter((detail) => detail.question_id === id);
    return own.length === 0 || fixed.has(id) ? undefined : own.map((detail) => detail.message).join(" ");
  };

  // A new verdict: what was fixed since the last one is no longer known to be right.
  useEffect(() => setFixed(new Set()), [submission]);
  // Once for each verdict, when the card is open again: the event that opens it may come after the verdict, and the
  // controls of a sent card take no focus.
  const led = useRef<typeof submission>(undefined);
  useEffect(() => {
    if (!open || submission?.is !== "invalid" || led.current === submission) return;
    led.current = submission;
    focusFirst(root.current, submission.details[0]?.question_id);
  }, [open, submission]);
  useEffect(() => {
    if (ask.settlement !== null) dropDraft(ask.id);
  }, [ask.id, ask.settlement]);
  useEffect(() => {
    setSkipping(false);
    setSaid("");
    setTried(false);
  }, [ask.id, now.is]);
  const focusHeading = (): void => root.current?.querySelector<HTMLElement>("h1, h2")?.focus();
  // When the card's controls go while one of them has the focus, the focus stays on this card.
  const hadFocus = useRef(false);
  useLayoutEffect(() => {
    if (hadFocus.current && document.activeElement === document.body) focusHeading();
  });
  hadFocus.current = root.current?.contains(document.activeElement) ?? false;

  async function send(answers: Answer[], rejected: boolean, reason: string): Promise<void> {
    const chose = rejected ? "" : (inWords(ask, answers) ?? "answer");
    await reported(live, ask);
    await submit(live, ask, { answers, rejected, reject_reason: reason }, chose);
  }

  function act(allowed: boolean, what: () => void): void {
    if (!open || notice === "offline" || notice === "readonly") return;
    if (!allowed) {
      setSaid(words.cardTooSoon);
      return;
    }
    setSaid("");
    what();
  }

  function submitAnswers(): void {
    const first = lack[0];
    if (first !== undefined) {
      setTried(true);
      setSaid(ask.questions.length === 1 && takesSelection(first) ? words.cardPickOne : ask.allows_partial ? words.cardAnswerNeeded : words.cardAnswerAll);
      focusFirst(root.current, first.id);
      return;
    }
    if (risk) {
      if (isCut(root.current)) setSaid(words.confirmHidden);
      else void send(confirmation(ask, toAnswers(ask, draft.entries, painted)), false, "");
      return;
    }
    if (ask.mode === "url") {
      const to = destinationOf(ask);
      if (to === null) return;
      window.open(to.href, "_blank", "noopener,noreferrer");
      void send([], false, "");
      return;
    }
    void send(toAnswers(ask, draft.entries, painted), false, "");
  }

  const audience = [ask.origin.client?.name, ask.origin.server].filter((name) => typeof name === "string").map((name) => plain(name, 60));

  let body: ComponentChildren;
  if (now.is === "settled") {
    body = <Settled live={live} ask={ask} end={now.end} settlement={now.settlement} submission={submission} />;
  } else {
    body = (
      <>
        {notice !== null && <CardNotice live={live} ask={ask} notice={notice} submission={submission} />}
        {ask.confirm !== null && <Confirm call={ask.confirm} />}
        {ask.mode === "url" && <Link ask={ask} />}
        {(risk && !together ? ask.questions.filter((question) => question !== soleBoolean(ask)) : ask.questions).map((question) => (
          <Question
            key={question.id}
            ask={ask}
            question={question}
            entries={draft.entries}
            disabled={now.is === "sent" || notice === "readonly"}
            error={errorOf(question.id)}
            audience={audience.length === 0 ? asker(ask) : audience.join(" and ")}
            onPut={(entry) => {
              setFixed(new Set([...fixed, question.id]));
              if (said !== "") setSaid("");
              dismiss(ask.id);
              putEntry(ask, question.id, entry);
            }}
          />
        ))}
        {!together && <Foot
          live={live}
          ask={ask}
          sent={now.is === "sent"}
          notice={notice}
          answered={ask.questions.filter((question) => counts(question, draft.entries, painted)).length}
          needed={lack.length}
          savedAt={draft.savedAt}
          said={said}
          skipping={skipping}
          onSkipping={(event, on) => act(guard.click(event), () => setSkipping(on))}
          onSkip={(allowed, reason) => act(allowed, () => void send([], true, reason))}
          onSubmit={(event) => act(guard.click(event), submitAnswers)}
          guard={guard}
        />}
      </>
    );
  }

  // No section: the same may be asked twice in one session, and landmarks of one name cannot be told apart.
  return (
    <article
      class={`card ${boxed ? "boxed" : ""} ${now.is === "settled" ? "done" : risk ? "risk" : ""} ${now.is === "sent" ? "sent" : ""}`}
      aria-labelledby={heading}
      aria-busy={now.is === "sent" || undefined}
      data-ask={ask.id}
      data-phase={now.is}
      data-notice={notice ?? undefined}
      ref={root}
      onClickCapture={(event) => {
        // Choosing, too, waits until the card stands still.
        const choice = event.target instanceof Element ? event.target.closest(".choice") : null;
        if (choice !== null && !guard.click(event)) {
          event.preventDefault();
          event.stopPropagation();
          setSaid(words.cardTooSoon);
        }
      }}
      onKeyDown={(event) => {
        if (!open) return;
        const wish = shortcut(event, risk);
        if (together && typeof wish !== "number" && wish !== "leave") return;
        if (wish === "submit" && !skipping) {
          event.preventDefault();
          act(guard.key(), submitAnswers);
        } else if (wish === "skip") {
          event.preventDefault();
          act(guard.key(), () => setSkipping(true));
        } else if (typeof wish === "number") {
          const input = digit(event.target, root.current, wish);
          if (input !== null) {
            event.preventDefault();
            // The click passes the guard above like any other.
            input.click();
            input.focus();
          }
        } else if (wish === "leave") {
          event.preventDefault();
          event.stopPropagation();
          if (skipping) setSkipping(false);
          focusHeading();
        }
      }}
    >
      <header>
        <From live={live} ask={ask} inSession={boxed} />
        <Message
          ask={ask}
          boxed={boxed}
          focus={focus}
          id={heading}
          between={
            now.is === "sent" ? (
              <p class="when">{(submission?.is === "unknown" ? words.cardSentUnknown : words.cardSent)(ask.origin.holder)}</p>
            ) : now.is === "settled" ? null : notice === "offline" ? (
              <p class="when">{words.noticeLastSeen(clock(live.heardAt, Date.now(), true))}</p>
            ) : (
              <Countdown live={live} ask={ask} withOpened={!boxed} />
            )
          }
        />
      </header>
      {body}
      <p class="hide" role="status">
        {now.is === "sent" ? words.cardSent(ask.origin.holder) : now.is === "settled" ? (root.current === null ? "" : words.inboxSettled) : ""}
      </p>
    </article>
  );
}

/** The yes/no question that the confirm's own two buttons answer. */
function soleBoolean(ask: Ask) {
  const booleans = ask.questions.filter((question) => question.kind === "boolean");
  return booleans.length === 1 ? booleans[0] : undefined;
}

function confirmation(ask: Ask, answers: Answer[]): Answer[] {
  const question = soleBoolean(ask);
  if (question === undefined) return answers;
  return [...answers.filter((answer) => answer.question_id !== question.id), { question_id: question.id, selected_options: ["true"], custom_text: "" }];
}

export function focusFirst(card: HTMLElement | null, question: string | undefined): void {
  // After the render that marks it.
  requestAnimationFrame(() => {
    const all = [...(card?.querySelectorAll<HTMLElement>("[data-q]") ?? [])];
    const target = all.find((one) => one.dataset["q"] === question) ?? null;
    const control = target?.querySelector<HTMLElement>("input:checked, input:not([type=search]), textarea") ?? null;
    control?.focus();
    target?.scrollIntoView({ block: "center" });
  });
}
