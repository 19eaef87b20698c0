// Every word that the page says by itself, in one place. What strangers wrote is never in here and never mixed in as markup.
import type { Ask, Flag, HolderKind, Outcome, Provenance, Question, Scope, Source } from "./api/types.ts";
import type { Filter, When } from "./model/groups.ts";

const HOLDERS: Record<HolderKind, string> = { agent: "agent", gateway: "gateway", ask: "script", tool: "tool", hook: "hook" };
export const sources: Record<Source, string> = {
  elicitation: "",
  permission: "permission",
  refusal: "refusal",
  confirm: "confirm",
  tool: "",
  script: "",
};

export function plural(count: number, one: string, many = `${one}s`): string {
  return `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
}

export const product = "handraise";

export const navLabel = "Main";
export const pages = { inbox: "Inbox", sessions: "Sessions", settings: "Settings" };
export const navSkipToList = "Skip to the list";
export const navSkipToContent = "Skip to content";
export const navWaiting = (count: number) => `${count} waiting`;
export const navLive = (name: string) => `Live · ${name}`;
export const navConnecting = "Connecting…";
export const navLost = "Lost the inbox";
export const navAllKeys = "all keys";

export const title = (page: string, count: number) => `${count > 0 ? `(${count}) ` : ""}${page === "" ? "" : `${page} · `}handraise`;

export const signInTitle = "Sign in to this inbox";
export const signInLead = ["Open the link that ", "handraise up", " printed, or paste its code."] as const;
export const signInByLink = "This link signs you in, once, in this browser.";
export const signInLabel = "Code or operator token";
export const signInName = "Your name here";
export const signInNameHint = "Other operators see it beside your answers.";
export const signInSubmit = "Sign in";
export const signInSubmitting = "Signing in…";
export const signInLost = ["Lost it? ", "handraise token create --scope operator"] as const;
export const signInUsed = "That link was used before or is too old. Each one works once, for 10 minutes.";
export const signInWrong = "That code or token is not valid here.";
export const signInTooMany = "Too many attempts. Wait a minute, then try again.";
export const signInUnreachable = "The inbox cannot be reached. Is “handraise up” still running?";
export const signInEnded = "Your sign-in has ended. Drafts in this browser are kept.";
export const signInHolder = "That is a holder’s token. It cannot sign in; an operator’s can.";
export const signInFailed = (message: string) => `Signing in failed. ${message}`;
export const signInOut = "Sign out";

export const inboxTitle = "Inbox";
export const inboxFind = "Find an ask";
export const inboxOrigin = "Origin";
export const inboxFilters = { all: "All", agents: "Agents", gateways: "Gateways", scripts: "Scripts" } satisfies Record<Filter, string>;
export const inboxGroups = { soon: "Due in 5 minutes", hour: "Within the hour", later: "Later", never: "No deadline" } satisfies Record<When, string>;
export const inboxLoading = "Loading your inbox…";
export const inboxNothingFound = "No ask matches.";
export const inboxShowAll = "show all";
export const inboxMore = (count: number) => `${plural(count, "more ask")} from`;
export const inboxArrived = (name: string) => `1 new ask from ${name}`;
export const inboxUnloaded = (count: number) => `${plural(count, "more ask")} not shown. Answer or skip some first.`;
export const inboxPick = "Choose an ask on the left, or press j.";
export const inboxNewRow = "new, ";
export const inboxCharacters = (hidden: string) => `${hidden} more characters`;
export const inboxDraft = "draft";
export const inboxMarked = "marked";
export const inboxParked = "parked";
export const inboxLink = "link";
export const inboxSent = "sent";
export const inboxSettled = "settled";
export const inboxDisconnected = "not connected";
export const inboxWaits = "waits for you";
export const inboxTimeUp = "time is up";
export const inboxLeft = (time: string) => `${time} left`;
export const inboxAgo = (time: string) => `${time} ago`;
export const inboxJustNow = "just now";

export const emptyTitle = "No hands up";
export const emptyText = (running: number) =>
  `Nothing is waiting for you. ${running === 0 ? "No session is" : running === 1 ? "One session is" : `${running} sessions are`} running; the next question appears here by itself, and in the tab title.`;
export const emptySee = "See what is running";

export const firstTitle = "Nobody can raise a hand yet";
export const firstText = "Your inbox is ready. Run one of these in another terminal. The first question shows up here within seconds.";
export const firstSteps = [
  { title: "Ask from a script", code: 'handraise ask "Deploy?" \\\n  --choice yes --choice no' },
  { title: "Run an agent", code: "handraise agent -- claude-agent-acp" },
  { title: "Put it in front of an MCP server", code: "handraise mcp -- npx -y your-server" },
];
export const firstStatus = (host: string) => `Listening on ${host}. Nothing connected yet.`;

export const holder = (kind: HolderKind) => HOLDERS[kind];


export const cardBack = "← Inbox";
export const cardLoading = "Loading the question…";
export const cardMissingTitle = "No such ask";
export const cardMissing = "It may have ended long ago, or the address is wrong.";
export const cardUnreadable = "This ask could not be loaded.";
export const cardAs = " as ";
export const cardVerbs = {
  elicitation: " asks",
  permission: " asks permission",
  refusal: " asks after a refusal",
  confirm: " asks to confirm",
  tool: " asks",
  script: " asks",
} satisfies Record<Source, string>;
export const cardAsksLink = " asks you to open a page";
export const cardForServer = " for server ";
export const cardInSession = " in ";
export const cardOpened = (time: string) => `Opened ${time}`;
export const cardThen = (ask: Ask) =>
  ask.parked_until !== null
    ? ""
    : ask.on_deadline === "decline"
    ? ", then it is declined without you"
    : ask.on_deadline === "refuse"
      ? ", then it is refused"
      : ", then it goes on without an answer";
export const cardNoDeadline = "It waits for you, without a deadline";
export const cardTimeUp = "Time is up; waiting to hear how it ended";
export const cardOneMinute = (message: string) => `1 minute left for: ${message}`;
export const cardSkip = "Skip";
export const cardSubmit = "Submit";
export const cardSubmitAgain = "Submit again";
export const cardKeep = "Keep my answer";
export const cardSubmitKeys = "Ctrl ↵";
export const cardSubmitKeysMac = "⌘ ↵";
export const cardWhy = "Why? (optional; whoever asks may see it)";
export const cardSkipNow = "Skip it";
export const cardSkipBack = "Do not skip";
export const cardClear = "Clear";
export const cardClearOf = (question: string) => `Clear ${question}`;
export const cardProgress = (answered: number, of: number, partial: boolean, needed: number) =>
  `${answered} of ${of} answered${answered === of ? "" : !partial ? "; all are needed" : needed > 0 ? `; ${needed} more needed` : "; the rest is left out"}.`;
export const cardPickOne = "Choose one first.";
export const cardAnswerAll = "Answer every question first.";
export const cardAnswerNeeded = "Answer what is needed first.";
export const cardDraftSaved = (time: string) => `Draft saved ${time}`;
export const cardNotSettled = "Nothing is settled yet";
export const cardSent = (kind: HolderKind) => `Sent. Waiting for the ${HOLDERS[kind]} to take it…`;
export const cardSentUnknown = (kind: HolderKind) => `Sent. The ${HOLDERS[kind]}’s side has not said yet whether it took it.`;
export const cardTooSoon = "That was pressed before the question stood still. Nothing was sent.";

export const togetherMarked = (count: number) => `${count} marked: answer together`;
export const togetherTitle = "Answer together";
export const togetherSend = (count: number) => `Answer ${count} together, all or none`;
export const togetherFailed = (message: string) => `None was answered. ${message}`;

export const noticeInvalid = (count: number) =>
  `${count === 1 ? "One answer was" : `${count} answers were`} refused. Nothing was sent on, the ask is still open.`;
export const noticeUndelivered = (name: string) => ({
  title: `Your answer did not reach ${name}`,
  text: "Its connection is down. Nothing was queued; your draft is kept. If it is not back by the deadline, its side ends the ask.",
});
export const noticeDisconnected = (name: string) => ({
  title: `${name} is not connected`,
  text: "An answer cannot reach it now. The ask is still open, and what you enter is kept.",
});
export const noticeOffline = (seconds: number) => ({
  title: "This page lost the inbox",
  text: `Trying again ${seconds > 0 ? `in ${seconds} s` : "now"}. Your draft is kept in this browser.`,
});
export const noticeLastSeen = (time: string) => `Seen last at ${time}, may have changed`;
export const noticeTryNow = "Try now";
export const noticeFailed = (status: number, message: string) => ({
  title: "Your answer was not sent",
  text:
    status === 0
      ? "The inbox cannot be reached. The ask is still open; your draft is kept."
      : status === 403
        ? "Your sign-in may read here, not answer."
        : status === 429
          ? "Too many answers at once. Wait a moment, then submit again."
          : `The inbox said: ${message === "" ? `status ${status}` : message}`,
});
export const noticeParked = (time: string) => ({
  title: "The call ended without an answer",
  text: `Answer within ${time}: the next identical call uses it once, unasked.`,
});
export const noticeReadonly = { title: "You may read here, not answer", text: "Your sign-in has the scope viewer. An operator can answer." };
export const noticeTheirs = (only: boolean, whose: string) => ({ ...noticeReadonly, text: `${only ? "Only" : "All but"} ${whose} can answer.` });

export const questionRequired = "needed";
export const questionMissing = "This must be answered.";
export const questionOwnWords = (title: string) => `${title}, in your own words`;
export const questionOwnWordsPlaceholder = "Or in your own words";
export const questionOptional = "Optional";
export const questionItems = (least: number | undefined, most: number | undefined) => upperFirst(`${range(least || undefined, most) || "any number"} of these`);
export const questionYes = "Yes";
export const questionNo = "No";
export const questionPrefilled = "Filled in by the asking side; sent as it stands.";
export const questionBeside = (adds: boolean, kind: HolderKind) => `Sent beside your pick.${adds ? "" : ` Where the ${HOLDERS[kind]} keeps only one, your words win.`}`;
export const questionInstead = "Your words or a pick, not both.";
export const questionFindChoice = "Find a choice";
export const questionShown = (shown: number, of: number) => `${shown.toLocaleString("en")} of ${of.toLocaleString("en")}`;
export const questionNoChoice = "No choice matches.";
export const questionChosen = (labels: string) => `Chosen: ${labels}`;
export const questionSends = "sends ";
export const questionNoPreview = "No preview.";
export const questionPreview = (label: string) => `Preview of ${label}`;
export const questionSecret = (names: string) => `Looks like a secret. ${names} will see it in plain text.`;
export const questionPermissionHint = "The words are the agent’s; allow and reject are what it declared.";
export const questionZone = (offset: string) => `In your time zone, UTC${offset}`;
export const questionHint = constraintHint;
export const questionPattern = "Of the form ";
export const questionAnswer = "Answer";

export const confirmRefuse = (action: string) => `Do not ${lowerFirst(action)}`;
export const confirmAct = (tool: string) => `Run ${tool}`;
export const confirmAccount = "account";
export const confirmTarget = "target";
export const confirmArguments = "Arguments of the call";
export const confirmPreview = "What it would do, in the server’s own words";
export const confirmHidden = "Show all of the call first.";

export const linkOpen = (host: string) => `Open ${host} ↗`;
export const linkOpenAnyway = "Open anyway ↗";
export const linkDoNot = "Do not open";
export const linkNotFetched = (host: string) => `Not opened or fetched yet. What you enter there goes to ${host}, never through the agent.`;
export const linkLookalike = (shown: string) => `This host hides a letter of another alphabet: it would show as “${shown}”.`;
export const linkDisguise = (name: string) => `“${name}” before the @ is not the host.`;
export const linkUnencrypted = "Not encrypted: what you enter there can be read on the way.";
export const linkUnusable = "This is no web address that the page would open.";

export const endMine = (kind: HolderKind, time: string, where: string, parked: boolean) => ({
  title: `You answered, the ${HOLDERS[kind]} has it`,
  text: `${time}, ${where}. ${parked ? "The next identical call uses it once, unasked" : `The ${kind === "ask" ? "script" : "same call"} goes on`}.`,
});
export const endSkipped = (kind: HolderKind, reason: string | null) => ({
  title: "You skipped it",
  text: `The ${HOLDERS[kind]} was told that a human declined.${reason === null ? "" : ` Reason: “${reason}”`}`,
});
export const endOther = (who: string) => `${who} was first`;
export const endOtherText = (skipped: boolean, chose: string | null, time: string) =>
  `${skipped ? "Skipped it" : chose === null ? "Answered" : `Chose ${chose}`} at ${time}, in the inbox.`;
export const endYoursNotSent = (chose: string) => ` Your ${chose === "" ? "skip" : chose} was not sent.`;
export const endReported = (where: string) => ({ title: `Answered in ${where}`, text: (outcome: string) => `It reports ${outcome}; we saw nobody.` });
export const endExpired = (span: string) => `Nobody answered in ${span}`;
export const endExpiredText = (then: Ask["on_deadline"], time: string) =>
  `handraise ${then === null ? "ended" : `${then}d`} it at ${time}. Recorded as system, not as a human.`;
export const endWithdrawn = (name: string, gone: boolean, time: string) => ({
  title: "No longer needed",
  text: `${name} ${gone ? "was gone" : "cancelled the call"} at ${time}. Nobody’s answer was used.`,
});
export const endRecorded = (kind: HolderKind) => ({ title: "Kept, not delivered", text: `The ${HOLDERS[kind]} had gone when you answered.` });
export const endSystem = (outcome: Outcome, time: string) => ({
  title: `Ended without you: ${outcome.replaceAll("_", " ")}`,
  text: `At ${time}, by a rule of handraise. Recorded as system, not as a human.`,
});
export const endReason = "Reason";
export const endLeftOut = "Left out";
export const endProvenance = "Provenance";
export const endProvenances = {
  human: "human, another operator",
  client: "client: a token reported it, no person was seen",
  not_shown: "not shown to anybody",
  system: "system",
} satisfies Record<Provenance, string>;
export const endAnotherOperator = "Another operator";
export const endInInbox = "in the inbox";
export const endWithWords = (picked: string, text: string) => `${picked}, with “${text}”`;

export const sessionsTitle = "Sessions";
export const sessionsBack = "← Sessions";
export const sessionsGroups = { waiting: "Waiting for you", working: "Working", resting: "Resting", ended: "Ended" };
export const sessionsNone = "No sessions yet. “handraise agent -- CMD” starts one.";
export const sessionsPick = "Choose a session on the left.";
export const sessionsMissing = "No such session";
export const sessionsUntitled = "Untitled session";
export const sessionsAsksOpen = (count: number) => `${plural(count, "ask")} open`;
export const sessionsSigns = { running: "a turn is under way", background: "goes on in the background", cancelled: "cancelled" };
export const sessionsFinished = "finished its turn";
export const sessionsIdle = "waiting for a prompt";
export const sessionsEndedLine = "the agent has ended";
export const sessionsStopped = (reason: string) => `stopped: ${reason}`;
export const sessionsIcons = {
  waiting: "waiting for input",
  running: "running",
  background: "running in the background",
  finished: "finished",
  cancelled: "cancelled",
  failed: "failed",
};
export const sessionsSince = (time: string) => `since ${time}`;
export const sessionsCancel = "Cancel turn";
export const sessionsCancelling = "Cancelling…";
export const sessionsCancelFailed = "The turn was not cancelled.";
export const sessionsSend = "Send";
export const sessionsNext = "Next message";
export const sessionsMessageTo = (title: string) => `Message to ${title}`;
export const sessionsWaitsForYou = "The turn waits for your answer above. Cancel it to say something else.";
export const sessionsTurnRuns = "A turn is under way. Cancel it to say something else.";
export const sessionsIsEnded = "This session has ended.";
export const sessionsAdminOnly = "Prompts need a sign-in with the scope admin.";
export const sessionsNotConnected = "Its agent is not connected; nothing can be sent to it now.";
export const sessionsSendFailed = (message: string) => `Your message was not sent. ${message}`;
export const sessionsYou = "You";
export const sessionsAgent = "Agent";
export const sessionsThought = "Thought";
export const sessionsPlan = "Plan";
export const sessionsTools = "Tool calls";
export const sessionsToolStates = { running: "running", done: "done", failed: "failed", waiting: "waiting for you" };
export const sessionsTurnEnded = (reason: string) => (reason === "end_turn" ? "The turn ended." : `The turn ended: ${reason.replaceAll("_", " ")}.`);
export const sessionsLoading = "Loading the transcript…";
export const sessionsLoadFailed = "The transcript could not be loaded.";
export const sessionsEarlier = (count: number) => `Show ${plural(count, "earlier entry", "earlier entries")}`;
export const sessionsStart = "New session";
export const sessionsStartNone = "The configuration has no [[agent]] to start.";
export const sessionsStartCwd = (optional: boolean) => (optional ? "Folder (optional)" : "Folder");
export const sessionsStartPrompt = "First message (optional)";
export const sessionsStartNow = "Start";
export const sessionsStarting = "Starting…";
export const sessionsStartFailed = (message: string) => `It was not started. ${message}`;

export const image = "image: ";

export const settingsTitle = "Settings";
export const settingsFlags = "Flags";
export const settingsAccess = "Access tokens";
export const settingsAdminOnly = "Settings need a sign-in with the scope admin.";
export const settingsLoading = "Loading…";
export const settingsFailed = (message: string) => `This could not be loaded or saved. ${message}`;
export const settingsOrder = "Order: your setting, then the environment, then the file, then the default.";
export const settingsSaved = (time: string) => `Saved ${time}. ${settingsOrder}`;
export const settingsTakeBack = "Take my setting back";
export const settingsSource = { default: "default", file: "set by the file", environment: "set by the environment", setting: "set in the inbox" } satisfies Record<Flag["source"], string>;
export const settingsKnown = {
  "features.acpElicitation": {
    title: "Questions from agents",
    text: "Tell ACP agents that they may ask. Off: agents see no such ability, and what they ask anyway is declined.",
    applies: "for agents started from now on",
  },
  elicitation: {
    title: "Questions in MCP calls",
    text: "Off: every refusal goes back unasked and is recorded as disabled. Counts from the next call.",
    applies: "off in any place wins",
  },
} as Record<string, { title: string; text: string; applies: string }>;

export const accessSignedInAs = (name: string, scope: Scope) => `Signed in here as ${name}, scope ${scope}.`;
export const accessCreate = "New token";
export const accessScope = "Scope";
export const accessScopes = {
  viewer: "viewer: reads",
  operator: "operator: also answers",
  admin: "admin: also sessions, settings, tokens",
  holder: "holder: only asks",
} satisfies Record<Scope, string>;
export const accessName = "Name";
export const accessOwner = "Owner";
export const accessMake = "Create";
export const accessShownOnce = "Shown this once.";
export const accessCopy = "Copy";
export const accessDone = "I have it";
export const accessList = "Tokens";
export const accessColumns = ["Name", "Scope", "Made", "Ends", ""] as const;
export const accessPageSession = "signed-in page";
export const accessOfOwner = (owner: string) => `of ${owner}`;
export const accessNever = "–";
export const accessRevoke = "Revoke";
export const accessRevokeOf = (name: string) => `Revoke ${name}`;
export const accessRevokeSure = "Revoke for good";

export const textCut = (hidden: string) => `${hidden} more characters are hidden here.`;
export const textShowRest = (hidden: string) => `Show the other ${hidden} characters`;
export const textShowMore = (hidden: string) => `Show more of the ${hidden} hidden characters`;
export const textUnseen = "invisible character";
export const textCopy = "Copy";
export const textCopied = "Copied";
export const textCopyLink = (words: string) => `Copy the address of ${words}`;

export const keysTitle = "Keys";
export const keysClose = "Close";
export const keysMove = "move";
export const keysOpen = "open";
export const keysChoose = "choose";
export const keysSkip = "skip";
export const keysList = [
  ["j k", "next, previous ask"],
  ["↵", "open the ask"],
  ["1–9", "toggle a choice of the question in focus"],
  ["Ctrl ↵ or ⌘ ↵", "submit"],
  ["s", "skip, with an optional reason"],
  ["/", "find an ask"],
  ["u", "back to the list"],
  ["Esc", "leave a field, close; never skips"],
  ["x", "mark, to answer several together"],
  ["g i, g s", "inbox, sessions"],
  ["?", "these keys"],
] as const;

function lowerFirst(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1);
}

function upperFirst(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** "" where there is no bound. */
function range(least: number | undefined, most: number | undefined, shown: (count: number) => string = String): string {
  if (least !== undefined && most !== undefined) return least === most ? `exactly ${shown(least)}` : `${least} to ${shown(most)}`;
  if (least !== undefined) return `at least ${shown(least)}`;
  return most === undefined ? "" : `at most ${shown(most)}`;
}

/** What the schema demands, in one line; "" where it demands nothing. */
function constraintHint({ kind, constraints }: Question): string {
  const { minimum, maximum, minLength, maxLength, format } = constraints;
  const number = kind === "integer" ? "a whole number" : kind === "number" ? "a number" : "";
  const what = format === "email" ? "an e-mail address" : format === "uri" ? "a web address with https://" : "";
  const parts =
    number === ""
      ? [what, range(minLength || undefined, maxLength, (count) => plural(count, "character"))]
      : [number, range(minimum, maximum)];
  return upperFirst(parts.filter((part) => part !== "").join(", "));
}
