// What stands between an open card and its answer: refused, not delivered, not connected, offline, parked, read only.
import type { Ask } from "../api/types.ts";
import type { Notice, Submission } from "../model/phase.ts";
import { coarse } from "../model/time.ts";
import { plain } from "../model/visible.ts";
import type { Live } from "../state/live.ts";
import { useCell } from "../state/cell.ts";
import { useTick } from "../state/tick.ts";
import * as words from "../words.ts";
import { asker } from "./from.tsx";
import { Note } from "./note.tsx";

export function CardNotice({ live, ask, notice, submission }: { live: Live; ask: Ask; notice: Notice; submission: Submission | undefined }) {
  useTick(notice === "offline" || notice === "parked");
  const link = useCell(live.link);
  const name = asker(ask);
  switch (notice) {
    case "invalid": {
      const details = submission?.is === "invalid" ? submission.details : [];
      const known = new Set(ask.questions.map((question) => question.id));
      const loose = details.filter((detail) => !known.has(detail.question_id));
      return (
        <Note icon="warn" tone="danger" role="alert">
          {words.noticeInvalid(Math.max(1, details.length))}
          {loose.map((detail) => (
            <p>{plain(detail.message, 300)}</p>
          ))}
        </Note>
      );
    }
    case "undelivered": {
      const { title, text } = words.noticeUndelivered(name);
      return (
        <Note icon="warn" tone="warn" role="alert" title={title}>
          {text}
        </Note>
      );
    }
    case "disconnected": {
      const { title, text } = words.noticeDisconnected(name);
      return (
        <Note icon="off" tone="warn" title={title}>
          {text}
        </Note>
      );
    }
    case "offline": {
      const left = link.is === "lost" ? Math.ceil((link.retryAt - Date.now()) / 1_000) : 0;
      const { title, text } = words.noticeOffline(Math.max(0, left));
      return (
        <Note icon="off" tone="warn" title={title}>
          {text}
        </Note>
      );
    }
    case "failed": {
      const failed = submission?.is === "failed" ? submission : { status: 0, message: "" };
      const { title, text } = words.noticeFailed(failed.status, plain(failed.message, 300));
      return (
        <Note icon="warn" tone="warn" role="alert" title={title}>
          {text}
        </Note>
      );
    }
    case "parked": {
      const left = ask.parked_until === null ? 0 : Date.parse(ask.parked_until) - live.now();
      const { title, text } = words.noticeParked(coarse(left));
      return (
        <Note icon="clock" title={title}>
          {text}
        </Note>
      );
    }
    case "readonly":
      return (
        <Note icon="cut" title={words.noticeReadonly.title}>
          {words.noticeReadonly.text}
        </Note>
      );
  }
}
