// The frames of the gateway's WebSocket, as far as this page uses them; docs/operate/gateway.md describes them.

export interface ImageBlock {
  type: "image";
  data: string;
  mimeType: string;
}

export interface ToolCallBlock {
  type: "toolCall";
  id: string;
  name: string;
  /** While the call arrives, the raw text of its arguments. */
  arguments?: unknown;
}

export type Block =
  | { type: "text"; text: string }
  | { type: "thinking"; thinking: string }
  | ImageBlock
  | ToolCallBlock;

/** A row of a session's log. */
export interface Row {
  id: string;
  role: "user" | "assistant" | "system" | "tool";
  content: string;
  ts: number;
  toolCallId?: string;
  meta?: {
    contentBlocks?: Block[];
    queuedIds?: string[];
    stopReason?: string;
    errorMessage?: string;
    provider?: string;
    model?: string;
    usage?: Usage;
    toolName?: string;
    isError?: boolean;
    details?: ToolDetails;
  };
}

/** What a model call has used: tokens, and dollars. */
export interface Usage {
  input: number;
  output: number;
  cacheRead: number;
  cacheWrite: number;
  cost?: { total: number; unpricedCalls?: number };
}

/** A session that has its beginning in common with another one. */
export interface Branch {
  key: string;
  name: string;
  title: string | null;
  /** The session that it was forked from, and the last message that the two have in common. */
  from: string | null;
  at: string | null;
}

export interface ToolDetails {
  diff?: string;
  plan?: { steps: PlanStep[] };
  [name: string]: unknown;
}

export interface Waiting {
  messageId: string;
  text: string;
  images: number;
  acceptedAt: number;
}

export interface Report {
  messageId: string;
  row?: string;
  text?: string;
  class: string;
  message: string;
  ts?: number;
}

/** Something that a question shows: all of it, with what hides or moves text written out. */
export interface Fact {
  label: string;
  text: string;
  form: "text" | "diff";
  isWhole: boolean;
}

export type Scope = "call" | "path" | "directory";

export interface Answer {
  answer: "once" | "always" | "no" | "words" | "cancel" | "instead";
  scope?: Scope;
  reason?: string;
  words?: string;
}

export interface Question {
  id: string;
  session: string;
  toolCallId: string;
  toolName: string;
  reason: string;
  shown: Fact[];
  changes?: Fact[];
  always?: { kind: Scope; covers: string }[];
  /** The words that answer it; then there is no yes. */
  wants?: { label: string; choices?: string[]; without?: string };
  askedAt: number;
  expiresAt: number;
}

export interface LiveTool {
  toolCallId: string;
  toolName: string;
  arguments: Record<string, unknown>;
  startedAt: number;
  text: string;
  end?: { durationMs: number; isError: boolean };
  details?: ToolDetails;
}

export interface Live {
  waiting: Waiting[];
  reports: Report[];
  step: null | {
    model: string | null;
    blocks: Record<string, { type: "text" | "thinking"; text: string } | { type: "toolCall"; id: string; name: string }>;
    isComplete: boolean;
    tools: LiveTool[];
  };
}

/** What the agent may do without a question. */
export type Mode = "read-only" | "plan" | "ask" | "auto" | "sandbox";

/** The model and the thinking level of a session, and what else it may have. */
export interface Choices {
  model: string;
  models: string[];
  thinking: { asked: string; level: string; offered: string[] };
}

export interface PlanStep {
  text: string;
  status: "pending" | "in_progress" | "completed";
}

/** A file that the agent's tools have changed: how it differs, or why that is not known. */
export interface Change {
  path: string;
  diff?: string;
  notCompared?: string;
}

export interface Watched {
  session: string;
  busy: boolean;
  mode?: Mode;
  stream: string;
  sequence: number;
  resumed: boolean;
  live: Live;
  approvals: Question[];
}

export interface History {
  session: string;
  busy: boolean;
  stream: string;
  sequence: number;
  until: number;
  messages: Row[];
  reports: Report[];
}

export interface ListedSession {
  key: string;
  name: string;
  title: string | null;
  /** What it is called without a title. */
  automaticTitle: string | null;
  labels: string[];
  forkedFrom: string | null;
  updatedAt: number;
  model: string | null;
  totalTokens: number | null;
  busy: boolean;
  approvals: number;
  snippet: { before: string; matched: string; after: string } | null;
}

/** Labels that a session has if it is pinned or archived. */
export const PINNED = "pinned";
export const ARCHIVED = "archived";

/** How the label begins that names the folder of a session. */
const FOLDER = "folder:";
/** The folder of a session; empty for none. */
export const folderOf = (session: ListedSession) => session.labels?.find((label) => label.startsWith(FOLDER))?.slice(FOLDER.length) ?? "";

/** What a session is called in lists and headings. */
export const titleOf = (session: ListedSession) => session.title ?? session.automaticTitle ?? session.name;

/** An event of a session; `type` says which fields there are. */
// biome-ignore lint: the events are many, and each is read in one place
export type SessionEvent = { type: string; [name: string]: any };

export interface EventFrame {
  type: "event";
  session: string;
  sequence: number;
  event: SessionEvent;
}

/** What a command about a session says. */
export interface CommandAnswer {
  rows: string[][];
  text: string;
  /** The session that goes on from here, if it is another one. */
  session?: string;
  /** A message that was not sent, to be changed and sent again. */
  unsent?: string;
}

/** A command that a message can begin with. */
export interface Command {
  /** With the slash. */
  name: string;
  description: string | null;
}

export interface Attachment {
  mediaType: string;
  data: string;
  /** Of a file that is no picture. */
  name?: string;
}

export class RequestError extends Error {
  /** The whole error, where the gateway says more. */
  details?: Record<string, unknown>;

  constructor(
    readonly errorClass: string,
    message: string,
  ) {
    super(message);
  }
}
