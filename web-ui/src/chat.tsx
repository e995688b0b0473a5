// One session: what was said, what happens, and where to write.

import { Fragment } from "preact";
import { useEffect, useLayoutEffect, useReducer, useRef, useState } from "preact/hooks";
import { ChoicesBar } from "./choices";
import { HELP, OF_GATEWAY } from "./commands";
import { Composer } from "./composer";
import type { Connection } from "./connection";
import { Icon } from "./icons";
import { Ask, Message } from "./parts";
import type { EventFrame, Report, Row } from "./protocol";
import { blocksOf, SessionView, takeUnsent } from "./session";
import { fullMoment, moment, visible } from "./text";
import { Foot, forkAt, Mine } from "./turns";
import { Changes, Plan } from "./work";

/** Pixels from the end within which the view follows what arrives. */
const NEAR = 80;
const STOPS: Record<string, string> = {
  error: "broke off",
  aborted: "stopped",
  length: "cut at the output limit",
  refusal: "refused",
};

/** Draws again at most once per frame, however many events come. */
function useView(name: string, connection: Connection, onNews: () => void): SessionView | null {
  const [view, setView] = useState<SessionView | null>(null);
  const [, draw] = useReducer((number: number) => number + 1, 0);
  useEffect(() => {
    const made = new SessionView(name, connection);
    let frame = 0;
    made.onChange = () => {
      frame ||= requestAnimationFrame(() => {
        frame = 0;
        draw(undefined);
      });
    };
    made.onNews = onNews;
    const heed = (event: EventFrame) => {
      if (event.session === made.key || !made.key) made.heed(event);
    };
    connection.onEvent = heed;
    connection.onGap = () => made.gap();
    connection.onOpen = () => void made.join();
    setView(made);
    return () => {
      cancelAnimationFrame(frame);
      // The next session may have taken its place already.
      if (connection.onEvent === heed) {
        connection.onEvent = () => {};
        connection.onGap = () => {};
        connection.onOpen = () => {};
      }
      made.leave();
    };
  }, [name, connection]);
  return view?.name === name ? view : null;
}

function Failure({ report }: { report: Report }) {
  return (
    <p class="failure" role="alert">
      <Icon name="cross" /> {visible(report.message)} <span class="muted">({report.class})</span>
    </p>
  );
}

/** A message of the owner that is not in the log. */
function Unread({ text, note, children }: { text: string; note?: string; children?: preact.ComponentChildren }) {
  return (
    <article class="message user" aria-label="you">
      {text && <p>{text}</p>}
      {note && <p class="note">{note}</p>}
      {children}
    </article>
  );
}

interface Props {
  name: string;
  connection: Connection;
  isOffline: boolean;
  onNews: () => void;
  /** Begins a new session. */
  onNew: () => void;
  /** Shows another session. */
  onOpen: (name: string) => void;
}

export function Chat({ name, connection, isOffline, onNews, onNew, onOpen }: Props) {
  const view = useView(name, connection, onNews);
  const list = useRef<HTMLDivElement>(null);
  const follows = useRef(true);
  const [isAway, setAway] = useState(false);
  const [showsChanges, setShowsChanges] = useState(false);
  const [draft, setDraft] = useState(() => ({ text: takeUnsent(name) }));

  useLayoutEffect(() => {
    const place = list.current;
    if (place && follows.current) place.scrollTop = place.scrollHeight;
  });
  const scrolled = () => {
    const place = list.current;
    if (!place) return;
    follows.current = place.scrollHeight - place.scrollTop - place.clientHeight < NEAR;
    setAway(!follows.current);
  };
  const toEnd = () => {
    follows.current = true;
    setAway(false);
    const place = list.current;
    if (place) place.scrollTop = place.scrollHeight;
  };
  const earlier = async () => {
    const place = list.current;
    if (!view || !place) return;
    follows.current = false;
    const before = place.scrollHeight - place.scrollTop;
    await view.readEarlier();
    requestAnimationFrame(() => {
      place.scrollTop = place.scrollHeight - before;
    });
  };
  if (!view) return <div class="chat" />;

  const results = new Map<string, Row>();
  for (const row of view.rows) if (row.role === "tool" && row.toolCallId) results.set(row.toolCallId, row);
  const steps = view.openSteps;
  const shownReports = new Set<string>();
  const lastRow = view.rows.findLast((row) => row.role === "assistant");
  const calls = [...view.rows.map(blocksOf), ...steps.map((step) => step.blocks)].flat().filter((block) => block?.type === "toolCall");
  const common = { results, tools: view.tools, questions: view.questions, newestCall: calls.at(-1)?.id };
  let messageIds: string[] = [];
  let asked: Row | null = null;
  let answers: Row[] = [];
  const isFree = !view.busy && !isOffline && view.isLoaded;
  const isLastOfTurn = (at: number) => view.rows[at + 1] === undefined || view.rows[at + 1]?.role === "user";
  /** The branches that part with a message. The first row that is shown is the first of all if there are no earlier ones. */
  const forkBefore = (at: number) => (at > 0 || !view.hasMore ? forkAt(view.branches, view.key, view.rows[at - 1]?.id ?? null) : null);
  const branch = (row: Row, text: string) =>
    view.branch(row, text).then((made) => {
      onNews();
      onOpen(made);
    });
  /** What is reported of a turn, after its last row: an answer that was stopped stands above. What its row says is not said again. */
  const reportsAfter = (at: number) => {
    if (!isLastOfTurn(at)) return null;
    const begin = view.rows.slice(0, at + 1).findLastIndex((row) => row.role === "user");
    const turn = view.rows.slice(Math.max(begin, 0), at + 1);
    const reports = (turn[0]?.meta?.queuedIds ?? []).flatMap((id) => view.reports.get(id) ?? []);
    for (const report of reports) shownReports.add(report.messageId);
    const isSaid = ["error", "aborted"].includes(turn.at(-1)?.meta?.stopReason ?? "");
    return reports.slice(0, isSaid ? 0 : 1).map((report) => <Failure key={report.messageId} report={report} />);
  };
  const isEmpty = view.isLoaded && view.rows.length === 0 && view.waiting.length === 0 && steps.length === 0;
  const isWaitingForModel = view.busy && view.questions.length === 0 && steps.every((step) => step.isComplete) && !isToolRunning(view);

  return (
    <div class="chat">
      <ChoicesBar view={view} />
      <div class="list" ref={list} onScroll={scrolled} tabIndex={0} role="log" aria-label="Messages" aria-busy={view.busy}>
        <div class="column">
          {view.error && <p class="failure">{view.error}</p>}
          {!view.isLoaded && !view.error && <p class="muted center">Reading…</p>}
          {view.hasMore && (
            <button type="button" class="link center" onClick={() => void earlier()}>
              Show earlier messages
            </button>
          )}
          {isEmpty && <Beginnings onChoose={(text) => setDraft({ text })} />}
          {view.rows.map((row, at) => {
            if (row.role === "user") {
              messageIds = row.meta?.queuedIds ?? [];
              asked = row;
              answers = [];
              return (
                <div key={row.id} class="turn">
                  <time dateTime={new Date(row.ts).toISOString()} title={fullMoment(row.ts)}>
                    {moment(row.ts)}
                  </time>
                  <Mine row={row} fork={forkBefore(at)} isFree={isFree} onOpen={onOpen} onSay={(text) => branch(row, text)} />
                  {reportsAfter(at)}
                </div>
              );
            }
            if (row.role !== "assistant") return reportsAfter(at);
            const stop = STOPS[row.meta?.stopReason ?? ""];
            const foot = stop && (
              <p class="note">
                {stop}
                {row.meta?.errorMessage ? `: ${visible(row.meta.errorMessage)}` : ""}
              </p>
            );
            answers = [...answers, row];
            const question = asked;
            return (
              <Fragment key={row.id}>
                <Message blocks={blocksOf(row)} {...common} isCurrent={view.busy && row === lastRow} messageIds={messageIds} foot={foot} />
                {isLastOfTurn(at) && !(view.busy && row === lastRow) && (
                  <Foot answers={answers} isFree={isFree} onRetry={question ? () => branch(question, question.content) : undefined} />
                )}
                {reportsAfter(at)}
              </Fragment>
            );
          })}
          {steps.map((step) => (
            <Message key={`step-${step.number}`} blocks={step.blocks} {...common} isArriving={view.busy && !step.isComplete} isCurrent={view.busy} />
          ))}
          {isWaitingForModel && (
            <p class="working muted" role="status">
              <Icon name="spinner" /> Working
            </p>
          )}
          {view.notices.map((notice, number) => (
            <p key={number} class="notice muted">
              {visible(notice)}
            </p>
          ))}
          {[...view.reports.values()]
            .filter((report) => !shownReports.has(report.messageId) && report.text !== undefined)
            .map((report) => (
              <div key={report.messageId} class="turn">
                <Unread text={report.text ?? ""} note="not answered" />
                <Failure report={report} />
              </div>
            ))}
          {view.plan.length > 0 && <Plan steps={view.plan} />}
          {showsChanges && <Changes view={view} onClose={() => setShowsChanges(false)} />}
          {view.questions.map((question) => (
            <Ask key={question.id} question={question} onAnswer={(answer) => view.answer(question.id, answer)} />
          ))}
          {view.waiting.map((message) => (
            <Unread key={message.messageId} text={message.text} note={waits(message.images)} />
          ))}
          {view.unsent.map((message) => (
            <Unread key={message.id} text={message.text} note={message.error ? undefined : "sending…"}>
              {message.error && (
                <p class="failure">
                  {message.error}{" "}
                  <button type="button" class="link" onClick={() => view.discard(message)}>
                    Remove
                  </button>
                </p>
              )}
            </Unread>
          ))}
        </div>
      </div>
      {isAway && (
        <button type="button" class="to-end icon-button" aria-label="To the end" onClick={toEnd}>
          <Icon name="down" />
        </button>
      )}
      {isOffline && (
        <p class="offline" role="status">
          The gateway cannot be reached. Messages are sent when it is back.
        </p>
      )}
      <Composer
        draft={draft}
        busy={view.busy}
        commands={view.commands}
        onSend={(text, attachments) => {
          toEnd();
          if (!attachments.length && obey(text.trimEnd(), view, { onNew, onOpen, onChanges: () => setShowsChanges(true), onFailed: () => setDraft({ text }) })) return;
          view.submit(text, attachments).catch((error: Error) => {
            view.say(error.message);
            setDraft({ text });
          });
        }}
        onStop={() => void view.stop().catch(() => {})}
        onCommands={() => view.readCommands()}
      />
    </div>
  );
}

/** What one can ask here, for those who see an empty chat. */
const BEGINNINGS = [
  "What is in your workspace?",
  "Remind me tomorrow at nine to ",
  "Remember that I ",
  "Look up on the web: ",
  "Plan, in steps, how to ",
];

function Beginnings({ onChoose }: { onChoose: (text: string) => void }) {
  return (
    <div class="empty">
      <p class="muted center">Nothing was said in this session yet. You could ask, for example:</p>
      <ul>
        {BEGINNINGS.map((text) => (
          <li key={text}>
            <button type="button" onClick={() => onChoose(text)}>
              {text.endsWith(" ") ? `${text.trim()} …` : text}
            </button>
          </li>
        ))}
      </ul>
    </div>
  );
}

const MARKS = { pending: "[ ]", in_progress: "[>]", completed: "[x]" } as const;

interface Means {
  onNew: () => void;
  onOpen: (name: string) => void;
  onChanges: () => void;
  /** The line is still wanted. */
  onFailed: () => void;
}

/** Does what a command says, as in other chats. False if the text is a message. */
function obey(text: string, view: SessionView, { onNew, onOpen, onChanges, onFailed }: Means): boolean {
  if (OF_GATEWAY.test(text)) {
    view
      .order(text)
      .then((session) => session && onOpen(session))
      .catch((error: Error) => {
        view.say(error.message);
        onFailed();
      });
    return true;
  }
  switch (text) {
    case "/diff":
      onChanges();
      return true;
    case "/todos":
      view.say(view.plan.length ? view.plan.map((step) => `${MARKS[step.status]} ${step.text}`).join("\n") : "The agent has made no plan here.");
      return true;
    case "/new":
      onNew();
      return true;
    case "/stop":
      view
        .stop()
        .then((result) => view.say((result as { aborted: boolean }).aborted ? "Stopped." : "Nothing runs."))
        .catch((error: Error) => view.say(error.message));
      return true;
    case "/status":
      view.say(`Session ${view.key}, which ${view.busy ? "works" : "waits"}, in the mode ${view.mode}.`);
      return true;
    case "/help":
      view.say(HELP);
      return true;
    default:
      return false;
  }
}

function isToolRunning(view: SessionView): boolean {
  return [...view.tools.values()].some((tool) => !tool.end);
}

function waits(images: number): string {
  if (images === 0) return "waiting";
  return images === 1 ? "waiting, with 1 picture" : `waiting, with ${images} pictures`;
}
