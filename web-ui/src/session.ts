// What is shown of a session: the rows of its log, and what is not in the log yet.
//
// The log is the truth. Events build the step that goes on now; when a step is over, the rows are read again and replace
// it. So a page that was reloaded shows what one shows that stayed connected.

import { unknown } from "./commands";
import type { Connection } from "./connection";
import type {
  Attachment,
  Block,
  Branch,
  Change,
  Choices,
  Command,
  CommandAnswer,
  EventFrame,
  History,
  LiveTool,
  Mode,
  PlanStep,
  Question,
  Answer,
  Report,
  RequestError,
  Row,
  SessionEvent,
  ToolCallBlock,
  Waiting,
  Watched,
} from "./protocol";

const PAGE = 50;
const MOST_NOTICES = 20;
/** How many of the newest answers are compared with a step: the log may be ahead of the events by some steps. */
const ANSWERS_COMPARED = 5;
/** How many names of a new branch are tried. */
const MOST_NAMES = 20;
/** How many reads of the log are remembered. Events are seldom behind by more. */
const MOST_READS = 20;

/** One model call and the tools that it called. */
export interface Step {
  number: number;
  blocks: Block[];
  isComplete: boolean;
  startedAt: number;
  /**
   * The newest answer in the log before the step began. The row of the step comes after it. What was read since then may
   * hold that row already, although the event of its beginning comes only now.
   */
  after?: string;
}

/** A message of this page that the gateway has not acknowledged. */
export interface Unsent {
  id: string;
  text: string;
  images: number;
  error?: string;
}

/** Messages that sessions begin with in the editor, by the names of the sessions. */
const unsentTexts = new Map<string, string>();

/** The message that was not sent before a session went on here; empty for none. */
export function takeUnsent(session: string): string {
  const text = unsentTexts.get(session) ?? "";
  unsentTexts.delete(session);
  return text;
}

/** A line that may begin with a command of the owner. */
const COMMAND = /^\/[\p{L}\p{N}_:/-]+(?:\s|$)/u;

export class SessionView {
  key = "";
  rows: Row[] = [];
  hasMore = false;
  isLoaded = false;
  error = "";
  busy = false;
  /** The permission mode. */
  mode: Mode = "auto";
  choices: Choices | null = null;
  /** The commands that the owner has written. */
  commands: Command[] = [];
  /** The plan that the agent has shown last. */
  plan: PlanStep[] = [];
  steps: Step[] = [];
  tools = new Map<string, LiveTool>();
  waiting: Waiting[] = [];
  unsent: Unsent[] = [];
  reports = new Map<string, Report>();
  questions: Question[] = [];
  notices: string[] = [];
  /** The sessions that have their beginning in common with this one, and this one. */
  branches: Branch[] = [];
  onChange: () => void = () => {};
  /** Called when the list of sessions may look different. */
  onNews: () => void = () => {};

  private sequence = 0;
  /** The last reads of the log: the number of the newest event after it, and the newest answer in the log. */
  private reads: { until: number; answer?: string }[] = [];
  private stream = "";
  private counter = 0;
  private asked = 0;
  private newestRead = 0;
  private isWatched = false;
  private held: EventFrame[] | null = null;

  constructor(
    readonly name: string,
    private readonly connection: Connection,
  ) {
    void this.join();
  }

  leave(): void {
    this.onChange = () => {};
    this.onNews = () => {};
    if (this.isWatched) this.connection.request("unwatch", { session: this.name }).catch(() => {});
  }

  /** Begins to watch, or goes on after the connection was lost. */
  async join(): Promise<void> {
    if (this.connection.phase !== "open") return;
    this.held = [];
    try {
      const resume = this.isLoaded ? { after: this.sequence, stream: this.stream } : {};
      const watched = await this.connection.request<Watched>("watch", { session: this.name, ...resume });
      this.isWatched = true;
      this.key = watched.session;
      this.stream = watched.stream;
      this.questions = watched.approvals;
      if (!watched.resumed) {
        this.sequence = watched.sequence;
        this.adopt(watched);
        await this.read(Number.POSITIVE_INFINITY, true);
        this.readAround();
      }
      this.error = "";
    } catch (error) {
      this.error = (error as Error).message;
    }
    const held = this.held ?? [];
    this.held = null;
    for (const frame of held) this.heed(frame);
    this.onChange();
  }

  /** Events were lost: everything is read again. */
  gap(): void {
    this.isLoaded = false;
    void this.join();
  }

  private adopt(watched: Watched): void {
    const { live } = watched;
    this.busy = watched.busy || live.step !== null;
    this.mode = watched.mode ?? "auto";
    this.waiting = live.waiting;
    this.reports = new Map(live.reports.map((report) => [report.messageId, report]));
    this.steps = [];
    this.tools.clear();
    if (live.step) {
      const order = Object.entries(live.step.blocks).sort(([one], [other]) => Number(one) - Number(other));
      const blocks = order.map(([, block]): Block => {
        if (block.type === "toolCall") return { ...block, type: "toolCall" };
        return block.type === "thinking" ? { type: "thinking", thinking: block.text } : { type: "text", text: block.text };
      });
      this.steps = [{ number: ++this.counter, blocks, isComplete: live.step.isComplete, startedAt: Date.now() }];
      for (const tool of live.step.tools) this.tools.set(tool.toolCallId, tool);
    }
  }

  /** Reads the newest rows. Steps with a number below `until` are in them. */
  private async read(until: number, isFirst = false): Promise<void> {
    const turn = ++this.asked;
    const history = await this.connection.request<History>("history", { session: this.name, limit: PAGE });
    // A request that was answered late would bring back an earlier state.
    if (turn < this.newestRead) return;
    this.newestRead = turn;
    const first = history.messages[0];
    const at = first ? this.rows.findIndex((row) => row.id === first.id) : -1;
    if (isFirst || at < 0) {
      this.rows = history.messages;
      this.hasMore = history.messages.length >= PAGE;
    } else {
      this.rows = [...this.rows.slice(0, at), ...history.messages];
    }
    this.reads = [
      ...(isFirst ? [] : this.reads.slice(1 - MOST_READS)),
      { until: history.until, answer: this.answers.at(-1)?.id },
    ];
    for (const report of history.reports) this.reports.set(report.messageId, report);
    const taken = new Set(this.rows.flatMap((row) => row.meta?.queuedIds ?? []));
    this.waiting = this.waiting.filter((message) => !taken.has(message.messageId));
    if (!isFirst) this.steps = this.steps.filter((step) => step.number >= until);
    this.isLoaded = true;
    this.onChange();
  }

  async readEarlier(): Promise<void> {
    const before = this.rows[0]?.id;
    const history = await this.connection.request<History>("history", { session: this.name, limit: PAGE, before });
    this.rows = [...history.messages, ...this.rows];
    this.hasMore = history.messages.length >= PAGE;
    for (const report of history.reports) this.reports.set(report.messageId, report);
    this.onChange();
  }

  /** Sends what a line stands for that may begin with a command of the owner. Fails if there is none, or it cannot be used so. */
  async submit(line: string, attachments: Attachment[]): Promise<void> {
    if (!COMMAND.test(line)) return this.send(line, attachments);
    const { message } = await this.connection.request<{ message: string | null }>("expand", { session: this.name, text: line });
    const problem = message === null && unknown(line, this.commands);
    if (problem) throw new Error(problem);
    return this.send(message ?? line, attachments);
  }

  async send(text: string, attachments: Attachment[]): Promise<void> {
    const message: Unsent = { id: crypto.randomUUID(), text, images: attachments.filter((one) => !one.name).length };
    this.unsent = [...this.unsent, message];
    this.onChange();
    const params = { session: this.name, text, ...(attachments.length ? { attachments } : {}) };
    try {
      await this.connection.request("send", params, { id: message.id });
      this.unsent = this.unsent.filter((other) => other !== message);
    } catch (error) {
      message.error = (error as Error).message;
    }
    this.onChange();
    this.onNews();
  }

  /** Reads what stands around the messages: branches, the model, the plan. A device that may not see them goes without. */
  private readAround(): void {
    this.about<{ branches: Branch[] }>("branches", ({ branches }) => (this.branches = branches));
    this.readCommands();
    this.about<Choices>("model", (choices) => (this.choices = choices));
    this.about<{ plan: { steps: PlanStep[] } | null }>("plan", ({ plan }) => (this.plan = plan?.steps ?? []));
  }

  readCommands(): void {
    this.about<{ commands: Command[] }>("commands", ({ commands }) => (this.commands = commands));
  }

  private about<T>(method: string, take: (answer: T) => void): void {
    this.connection
      .request<T>(method, { session: this.name })
      .then((answer) => {
        take(answer);
        this.onChange();
      })
      .catch(() => {});
  }

  /** Chooses the model, empty for that of the config, or the thinking level. */
  async choose(choice: { model?: string; thinking?: string }): Promise<void> {
    this.choices = await this.connection.request<Choices>("model", { session: this.name, ...choice });
    this.onChange();
  }

  /** What the agent's tools have changed here. */
  async changes(): Promise<Change[]> {
    return (await this.connection.request<{ files: Change[] }>("changes", { session: this.name })).files;
  }

  /** Begins a branch before the message of `row`, with another text in its place. The name of the branch. */
  async branch(row: Row, text: string): Promise<string> {
    const attachments = blocksOf(row).flatMap((block) => (block.type === "image" ? { mediaType: block.mimeType, data: block.data } : []));
    const first = this.branches[0]?.name ?? this.name;
    const stem = /^[\w.-]{1,60}$/.test(first) ? first : "branch";
    const taken = new Set(this.branches.map((branch) => branch.name));
    for (let number = 2; ; number++) {
      const newSession = `${stem}-${number}`;
      if (taken.has(newSession)) continue;
      try {
        const made = await this.connection.request<{ name: string }>("fork", { session: this.name, newSession, before: row.id });
        const params = { session: made.name, text, ...(attachments.length ? { attachments } : {}) };
        await this.connection.request("send", params, { id: crypto.randomUUID() });
        return made.name;
      } catch (error) {
        // Another session has this name.
        if ((error as RequestError).errorClass !== "in_use" || number > this.branches.length + MOST_NAMES) throw error;
      }
    }
  }

  discard(message: Unsent): void {
    this.unsent = this.unsent.filter((other) => other !== message);
    this.onChange();
  }

  /** Shows a line of the page itself. */
  say(text: string): void {
    this.notices = [...this.notices.slice(1 - MOST_NOTICES), text];
    this.onChange();
  }

  /** Has the gateway obey a command about the session, and shows what it says. Gives the session that goes on, if it is another. */
  async order(text: string): Promise<string | undefined> {
    const said = await this.connection.request<CommandAnswer>("command", { session: this.name, text });
    this.say([...said.rows.map((row) => row.join("  ")), said.text].filter(Boolean).join("\n"));
    this.refresh(this.counter + 1);
    if (said.session && said.unsent) unsentTexts.set(said.session, said.unsent);
    return said.session;
  }

  stop(): Promise<unknown> {
    return this.connection.request("abort", { session: this.name });
  }

  setMode(mode: Mode): Promise<unknown> {
    return this.connection.request("mode", { session: this.name, mode });
  }

  answer(id: string, answer: Answer): Promise<unknown> {
    return this.connection.request("approve", { id, ...answer });
  }

  heed(frame: EventFrame): void {
    if (this.held) {
      this.held.push(frame);
      return;
    }
    if (frame.sequence <= this.sequence) return;
    this.sequence = frame.sequence;
    this.apply(frame.event);
    this.onChange();
  }

  private apply(event: SessionEvent): void {
    const step = this.steps.at(-1);
    switch (event.type) {
      case "accepted":
        if (!this.waiting.some((message) => message.messageId === event.messageId)) {
          this.waiting = [...this.waiting, event as unknown as Waiting];
        }
        this.onNews();
        break;
      case "taken": {
        const ids = new Set<string>(event.ids);
        this.waiting = this.waiting.filter((message) => !ids.has(message.messageId));
        const isKnown = this.rows.some((row) => row.meta?.queuedIds?.some((id) => ids.has(id)));
        if (!isKnown) {
          // Shown until the rows are read, which is at once.
          this.rows = [
            ...this.rows,
            { id: `taken-${event.ids[0]}`, role: "user", content: event.text, ts: Date.now(), meta: { queuedIds: event.ids } },
          ];
        }
        this.refresh(this.counter + 1);
        break;
      }
      case "message":
        this.waiting = this.waiting.filter((message) => message.messageId !== event.messageId);
        if (event.outcome.state === "reported") {
          const { class: errorClass, message } = event.outcome;
          const known = this.reports.get(event.messageId);
          this.reports.set(event.messageId, { ...known, messageId: event.messageId, class: errorClass, message, ts: Date.now() });
          this.refresh(this.counter + 1);
        }
        break;
      case "mode_changed":
        this.mode = event.to;
        break;
      case "model_chosen":
        this.choices = event.choices;
        break;
      case "run_start":
        this.busy = true;
        this.notices = [];
        this.onNews();
        break;
      case "run_end":
        this.busy = false;
        this.refresh(this.counter + 1);
        this.onNews();
        break;
      case "llm_start":
        this.steps = [
          ...this.steps,
          {
            number: ++this.counter,
            blocks: [],
            isComplete: false,
            startedAt: Date.now(),
            after: this.reads.filter((read) => read.until < this.sequence).at(-1)?.answer,
          },
        ];
        if (this.steps.length > 1) this.refresh(this.counter);
        break;
      case "llm_stream":
        if (step) this.arrives(step, event.event);
        break;
      case "llm_end":
        if (step) {
          step.blocks = event.message.content;
          step.isComplete = true;
        }
        break;
      case "tool_start":
        this.tools.set(event.toolCallId, { ...(event as unknown as LiveTool), text: "", startedAt: Date.now() });
        break;
      case "tool_execution_update": {
        const tool = this.tools.get(event.toolCallId);
        if (tool) tool.text = event.text;
        break;
      }
      case "tool_end": {
        const tool = this.tools.get(event.toolCallId);
        if (tool) {
          tool.text = event.text;
          tool.details = event.details;
          if (tool.details?.plan) this.plan = tool.details.plan.steps;
          tool.end = { durationMs: event.durationMs, isError: event.isError };
        }
        break;
      }
      case "approval":
        this.questions = [...this.questions.filter((one) => one.id !== event.id), event as unknown as Question];
        this.onNews();
        break;
      case "approval_closed":
        this.questions = this.questions.filter((one) => one.id !== event.id);
        this.onNews();
        break;
      case "retry":
      case "fallback":
      case "bound_reached":
      case "notice":
        if (event.message) this.notices = [...this.notices.slice(1 - MOST_NOTICES), String(event.message)];
        break;
      case "compaction":
        this.notices = [...this.notices.slice(1 - MOST_NOTICES), "Older messages were summarised."];
        break;
    }
  }

  private arrives(step: Step, event: SessionEvent): void {
    const at = event.index as number;
    const block = step.blocks[at];
    switch (event.type) {
      case "start":
        step.blocks = [];
        break;
      case "text_start":
      case "text_delta":
        if (block?.type === "text") block.text += event.delta ?? "";
        else step.blocks[at] = { type: "text", text: event.delta ?? "" };
        break;
      case "thinking_start":
      case "thinking_delta":
        if (block?.type === "thinking") block.thinking += event.delta ?? "";
        else step.blocks[at] = { type: "thinking", thinking: event.delta ?? "" };
        break;
      case "toolcall_start":
        step.blocks[at] = { type: "toolCall", id: event.id, name: event.name, arguments: "" };
        break;
      case "toolcall_delta":
        if (block?.type === "toolCall") block.arguments = `${block.arguments ?? ""}${event.delta}`;
        break;
      case "toolcall_end":
        step.blocks[at] = { type: "toolCall", ...event.toolCall };
        break;
    }
  }

  private refresh(until: number): void {
    // The next event, or the next connection, asks again.
    this.read(until).catch(() => {});
  }

  private get answers(): Row[] {
    return this.rows.filter((row) => row.role === "assistant");
  }

  /**
   * The steps that no row shows yet. Rows and events come on separate ways: the rows may have the answer of a step whose
   * last event has not come, and those of steps after it.
   */
  get openSteps(): Step[] {
    if (!this.steps.length) return this.steps;
    const answers = this.answers;
    return this.steps.filter((step) => {
      const newer = answers.slice(answers.findIndex((row) => row.id === step.after) + 1);
      return !newer.slice(-ANSWERS_COMPARED).some((row) => isOfStep(blocksOf(row), step));
    });
  }
}

/** Whether a row with these blocks is what the step has said, or what it is about to say. */
function isOfStep(blocks: Block[], step: Step): boolean {
  const calls = callsOf(blocks);
  const own = callsOf(step.blocks);
  if (own.length) {
    return own.every((id, at) => id === calls[at]) && (own.length === calls.length || !step.isComplete);
  }
  const text = textOf(step.blocks);
  if (step.isComplete) return calls.length === 0 && text === textOf(blocks);
  return text !== "" && textOf(blocks).startsWith(text);
}

function callsOf(blocks: Block[]): string[] {
  return blocks.filter((block): block is ToolCallBlock => block?.type === "toolCall").map((call) => call.id);
}

function textOf(blocks: Block[]): string {
  return blocks.map((block) => (block?.type === "text" ? block.text : "")).join("");
}

/** The blocks of a row. */
export function blocksOf(row: Row): Block[] {
  return row.meta?.contentBlocks ?? (row.content ? [{ type: "text", text: row.content }] : []);
}
