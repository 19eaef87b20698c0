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
    case "undelivered":
      return <Note icon="warn" tone="warn" role="alert" {...words.noticeUndelivered(name)} />;
    case "disconnected":
      return <Note icon="off" tone="warn" {...words.noticeDisconnected(name)} />;
    case "offline": {
      const left = link.is === "lost" ? Math.ceil((link.retryAt - Date.now()) / 1_000) : 0;
      return <Note icon="off" tone="warn" {...words.noticeOffline(Math.max(0, left))} />;
    }
    case "failed": {
      const failed = submission?.is === "failed" ? submission : { status: 0, message: "" };
      return <Note icon="warn" tone="warn" role="alert" {...words.noticeFailed(failed.status, plain(failed.message, 300))} />;
    }
    case "parked": {
      const left = ask.parked_until === null ? 0 : Date.parse(ask.parked_until) - live.now();
      return <Note icon="clock" {...words.noticeParked(coarse(left))} />;
    }
    case "readonly":
      return <Note icon="cut" {...(live.login.scope === "viewer" ? words.noticeReadonly : words.noticeTheirs(ask.who === "caller", plain(ask.origin.owner ?? "", 60)))} />;
  }
}
