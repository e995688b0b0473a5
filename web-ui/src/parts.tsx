// The parts of a chat: text, thoughts, tool calls, changes, questions.

import { type ComponentChildren, Fragment } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { copyCode } from "./copy";
import { Files, withoutFiles } from "./files";
import { Icon } from "./icons";
import type { Answer, Block, Fact, ImageBlock, LiveTool, Question, Row, ToolCallBlock } from "./protocol";
import { duration, markdown, shown, visible } from "./text";

/** Longest text that is shown of a tool's result before "Show all". */
const SHORT = 4_000;
/** Most lines of a change or a result that are shown without a click. */
const MOST_LINES = 16;
const IMAGE_TYPES = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/** Markdown. Text that still arrives is drawn at most once per frame; code gets its colours, and formulas and diagrams their
 *  form, when the text is whole. */
export function Markdown({ text, isArriving = false }: { text: string; isArriving?: boolean }) {
  const place = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    place.current?.replaceChildren(markdown(text));
  }, [text]);
  useEffect(() => {
    const here = place.current;
    if (isArriving || !here?.querySelector("code[class]")) return;
    // Without colours and drawn formulas all can be read as well.
    if (here.querySelector("pre code.language-mermaid")) import("./diagrams").then(({ showDiagrams }) => showDiagrams(here)).catch(() => {});
    if (here.querySelector("pre code:not(.language-math)")) import("./highlight").then(({ highlight }) => highlight(here)).catch(() => {});
    if (here.querySelector("code.language-math")) import("./math").then(({ showFormulas }) => showFormulas(here)).catch(() => {});
  }, [text, isArriving]);
  return <div class="markdown" ref={place} onClick={copyCode} />;
}

export function Picture({ block }: { block: ImageBlock }) {
  if (!IMAGE_TYPES.includes(block.mimeType)) return <p class="muted">[a picture of type {block.mimeType}]</p>;
  return <img class="picture" alt="" src={`data:${block.mimeType};base64,${block.data}`} />;
}

function Thinking({ text, isOpen }: { text: string; isOpen: boolean }) {
  if (!text) return null;
  return (
    <details class="thinking" open={isOpen || undefined}>
      <summary>{isOpen ? "Thinking…" : "Thoughts"}</summary>
      <Markdown text={text} />
    </details>
  );
}

/** A unified diff, a line coloured by what happens to it. The sign stays, for those who see no colour. */
export function Diff({ text, most = Number.POSITIVE_INFINITY }: { text: string; most?: number }) {
  const kind = (line: string) => {
    if (/^(\+\+\+|---|diff |index )/.test(line)) return "file";
    if (line.startsWith("@@")) return "place";
    if (line.startsWith("+")) return "added";
    return line.startsWith("-") ? "removed" : "same";
  };
  const all = visible(text).replace(/\n$/, "").split("\n");
  const [lines, rest] = useFold(all, most);
  const diff = (
    <div class="diff scroll" tabIndex={0} role="group" aria-label="change">
      <pre>
        {lines.map((line, number) => (
          <span key={number} class={kind(line)}>{`${line}\n`}</span>
        ))}
      </pre>
    </div>
  );
  return rest ? (
    <div>
      {diff}
      {rest}
    </div>
  ) : (
    diff
  );
}

/** The first lines of many, and a button for the rest. */
function useFold(all: string[], most: number): [string[], ComponentChildren] {
  const [isWhole, setWhole] = useState(false);
  // One more line is no reason for a button.
  if (isWhole || all.length <= most + 1) return [all, null];
  const button = (
    <button type="button" class="link" onClick={() => setWhole(true)}>
      Show all {all.length.toLocaleString()} lines
    </button>
  );
  return [all.slice(0, most), button];
}

/** What a call gave, without a click: how it changed a file, or the result of the newest call. */
function Outcome({ diff, text }: { diff?: string; text: string }) {
  const all = visible(text).replace(/\n+$/, "").split("\n");
  const [lines, rest] = useFold(all, MOST_LINES);
  if (diff) {
    return (
      <div class="outcome">
        <Diff text={diff} most={MOST_LINES} />
      </div>
    );
  }
  return (
    <div class="outcome code">
      <div class="scroll" tabIndex={0} role="group" aria-label="newest result">
        <pre>{lines.join("\n")}</pre>
      </div>
      {rest}
    </div>
  );
}

function Code({ text, label }: { text: string; label: string }) {
  const [isWhole, setWhole] = useState(false);
  const isLong = text.length > SHORT && !isWhole;
  return (
    <div class="code">
      <div class="scroll" tabIndex={0} role="group" aria-label={label}>
        <pre>{visible(isLong ? text.slice(0, SHORT) : text)}</pre>
      </div>
      {isLong && (
        <button type="button" class="link" onClick={() => setWhole(true)}>
          Show all {text.length.toLocaleString()} characters
        </button>
      )}
    </div>
  );
}

/** What a call does, in one line. */
export function brief(args: unknown): string {
  if (typeof args === "string") return args.slice(0, 200);
  if (!args || typeof args !== "object") return "";
  const fields = args as Record<string, unknown>;
  for (const name of ["command", "path", "file_path", "pattern", "query", "url", "text"]) {
    if (typeof fields[name] === "string") return fields[name].slice(0, 200);
  }
  const text = JSON.stringify(fields);
  return text === "{}" ? "" : text.slice(0, 200);
}

function Arguments({ value }: { value: unknown }) {
  if (value === undefined || value === "") return null;
  if (typeof value !== "object" || value === null) return <Code text={shown(value)} label="arguments" />;
  const fields = Object.entries(value as Record<string, unknown>);
  return (
    <dl class="arguments">
      {fields.map(([name, one]) => (
        <div key={name}>
          <dt>{visible(name)}</dt>
          <dd>
            <Code text={shown(one)} label={name} />
          </dd>
        </div>
      ))}
    </dl>
  );
}

function useClock(isRunning: boolean): void {
  const [, tick] = useState(0);
  useEffect(() => {
    if (!isRunning) return;
    const timer = setInterval(() => tick((number) => number + 1), 1_000);
    return () => clearInterval(timer);
  }, [isRunning]);
}

interface ToolProps {
  call: ToolCallBlock;
  result?: Row;
  live?: LiveTool;
  isAsked: boolean;
  /** Whether the session still works: a call without a result runs then. */
  isCurrent: boolean;
  /** Whether it is the newest call of the session. */
  isNewest: boolean;
}

export function Tool({ call, result, live, isAsked, isCurrent, isNewest }: ToolProps) {
  const isRunning = !result && !!live && !live.end;
  useClock(isRunning && !isAsked);
  const isFailed = result?.meta?.isError ?? live?.end?.isError ?? false;
  const isOver = !!result || !!live?.end;
  const details = result?.meta?.details ?? live?.details;
  const diff = typeof details?.diff === "string" ? details.diff : undefined;
  const text = result?.content ?? live?.text ?? "";
  const pictures = (result?.meta?.contentBlocks ?? []).filter((block): block is ImageBlock => block.type === "image");
  const args = live?.arguments ?? call.arguments;
  let state = "";
  if (isAsked) state = "waits for you";
  else if (isFailed) state = "failed";
  else if (isOver) state = "done";
  else if (isRunning) state = `running, ${duration(Date.now() - (live?.startedAt ?? Date.now()))}`;
  else if (isCurrent) state = "waits";
  else state = "no result";
  const time = typeof details?.durationMs === "number" ? details.durationMs : live?.end?.durationMs;
  const icon = isFailed ? "cross" : isOver ? "check" : isAsked ? "question" : isCurrent ? "spinner" : "dot";
  const folded = (
    <details class={`tool ${isFailed ? "failed" : ""}`}>
      <summary>
        <Icon name={icon} />
        <span class="name">{call.name}</span>
        <span class="brief">{visible(brief(args))}</span>
        <span class="state">{time !== undefined && isOver ? `${isFailed ? "failed, " : ""}${duration(time)}` : state}</span>
      </summary>
      <div class="inside">
        <h4>Arguments</h4>
        <Arguments value={args} />
        {diff && (
          <>
            <h4>Change</h4>
            <Diff text={diff} />
          </>
        )}
        {text && (
          <>
            <h4>{isOver ? "Result" : "So far"}</h4>
            <Code text={text} label="result" />
          </>
        )}
        {pictures.map((block, number) => (
          <Picture key={number} block={block} />
        ))}
      </div>
    </details>
  );
  const hasOutcome = isOver && (!!diff || (isNewest && text.trim() !== ""));
  return (
    <div class="call">
      {folded}
      {hasOutcome && <Outcome diff={diff} text={text} />}
    </div>
  );
}

interface MessageProps {
  blocks: Block[];
  results: Map<string, Row>;
  tools: Map<string, LiveTool>;
  questions: Question[];
  /** The id of the newest call of the session. */
  newestCall?: string;
  isArriving?: boolean;
  isCurrent: boolean;
  /** The messages that it answers, as far as they are known. */
  messageIds?: string[];
  foot?: ComponentChildren;
}

/** The path of the picture that a call has made, which goes with the answer. */
function madePicture(call: ToolCallBlock, result?: Row): string | undefined {
  const path = call.name === "image_generate" && !result?.meta?.isError && result?.meta?.details?.path;
  return typeof path === "string" ? path : undefined;
}

/** A message of the model, with the calls in it. */
export function Message({ blocks, results, tools, questions, newestCall, isArriving, isCurrent, messageIds, foot }: MessageProps) {
  const last = blocks.length - 1;
  return (
    <article class="message assistant" aria-label="assistant">
      {blocks.map((block, number) => {
        // A position that has not arrived yet.
        if (!block) return null;
        switch (block.type) {
          case "text": {
            const { text, paths } = withoutFiles(block.text);
            return (
              <Fragment key={number}>
                <Markdown text={text} isArriving={isArriving} />
                {paths.length > 0 && <Files messageIds={messageIds ?? []} paths={paths} isOver={!isCurrent} />}
              </Fragment>
            );
          }
          case "thinking":
            return <Thinking key={number} text={block.thinking} isOpen={!!isArriving && number === last} />;
          case "image":
            return <Picture key={number} block={block} />;
          case "toolCall": {
            const result = results.get(block.id);
            const made = madePicture(block, result);
            return (
              <Fragment key={block.id || number}>
                <Tool
                  call={block}
                  result={result}
                  live={tools.get(block.id)}
                  isAsked={questions.some((question) => question.toolCallId === block.id)}
                  isCurrent={isCurrent}
                  isNewest={block.id === newestCall}
                />
                {made && <Files messageIds={messageIds ?? []} paths={[made]} isOver={!isCurrent} />}
              </Fragment>
            );
          }
          default:
            return null;
        }
      })}
      {isArriving && <span class="arriving" role="img" aria-label="working" />}
      {foot}
    </article>
  );
}

/** A part of a question. All of it is there; what is long scrolls. */
function ShownFact({ fact }: { fact: Fact }) {
  return (
    <div>
      <dt>
        {fact.label}
        {!fact.isWhole && " (not all of it is known)"}
      </dt>
      <dd>
        {fact.form === "diff" ? (
          <Diff text={fact.text} />
        ) : (
          <div class="code">
            <div class="scroll" tabIndex={0} role="group" aria-label={fact.label}>
              <pre>{fact.text}</pre>
            </div>
          </div>
        )}
      </dd>
    </div>
  );
}

const scopeNames = { call: "Always for this call", path: "Always for this path", directory: "Always in this directory" } as const;

interface AskProps {
  question: Question;
  onAnswer: (answer: Answer) => Promise<unknown>;
}

/** A question about a call that needs an approval. */
export function Ask({ question, onAnswer }: AskProps) {
  const [isSent, setSent] = useState(false);
  const [error, setError] = useState("");
  const [reason, setReason] = useState("");
  useClock(true);
  const seconds = Math.max(0, Math.round((question.expiresAt - Date.now()) / 1_000));
  const answer = (one: Answer) => {
    setSent(true);
    onAnswer(one).catch((failure: Error) => {
      setSent(false);
      setError(failure.message);
    });
  };
  const facts = (list: Fact[]) => list.map((fact, number) => <ShownFact key={number} fact={fact} />);
  return (
    <section class="ask" aria-label={`approval of ${question.toolName}`}>
      <header>
        <Icon name="question" />
        <h3>
          {question.wants ? "Answer" : "Allow"} <code>{question.toolName}</code>
          {question.wants ? "" : "?"}
        </h3>
        <span class="muted">{seconds > 0 ? `${duration(seconds * 1_000)} left` : "time is over"}</span>
      </header>
      <p class="reason">{question.reason}</p>
      {question.changes && (
        <>
          <p class="error">This is different since you were asked:</p>
          <dl class="arguments">{facts(question.changes)}</dl>
        </>
      )}
      <dl class="arguments">{facts(question.shown)}</dl>
      {question.wants ? null : question.always ? (
        question.always.map((scope) => (
          <p key={scope.kind} class="muted">
            “{scopeNames[scope.kind]}” covers {scope.covers}.
          </p>
        ))
      ) : (
        <p class="muted">This cannot be allowed for good.</p>
      )}
      {error && <p class="error">{error}</p>}
      {question.toolName === "update_plan" && <Steps question={question} isSent={isSent} onAnswer={answer} />}
      {question.wants ? (
        <Words wants={question.wants} isSent={isSent} onAnswer={answer} />
      ) : (
        <div class="buttons">
          <button type="button" class="primary" disabled={isSent} onClick={() => answer({ answer: "once" })}>
            Allow once
          </button>
          {question.always?.map((scope) => (
            <button key={scope.kind} type="button" disabled={isSent} onClick={() => answer({ answer: "always", scope: scope.kind })}>
              {scopeNames[scope.kind]}
            </button>
          ))}
          <input type="text" aria-label="Why not, for the agent" placeholder="Why not (optional)" value={reason} onInput={(event) => setReason(event.currentTarget.value)} />
          <button type="button" class="danger" disabled={isSent} onClick={() => answer({ answer: "no", ...(reason.trim() && { reason }) })}>
            No
          </button>
        </div>
      )}
    </section>
  );
}

/** Other steps in the place of those of a plan. */
function Steps({ question, isSent, onAnswer }: { question: Question; isSent: boolean; onAnswer: (answer: Answer) => void }) {
  const shown = question.shown.find((fact) => fact.label === "steps")?.text ?? "";
  const [steps, setSteps] = useState(shown.replace(/^\[.\] /gm, ""));
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        onAnswer({ answer: "instead", words: steps });
      }}
    >
      <textarea aria-label="Steps of the plan, one in each line" rows={4} required value={steps} onInput={(event) => setSteps(event.currentTarget.value)} />
      <button type="submit" disabled={isSent || !steps.trim()}>
        Approve with these steps
      </button>
    </form>
  );
}

interface WordsProps {
  wants: NonNullable<Question["wants"]>;
  isSent: boolean;
  onAnswer: (answer: Answer) => void;
}

/** The answer in words to a question that wants some. */
function Words({ wants, isSent, onAnswer }: WordsProps) {
  const [words, setWords] = useState("");
  const choices = wants.choices ?? [];
  return (
    <form
      class="buttons"
      onSubmit={(event) => {
        event.preventDefault();
        onAnswer({ answer: "words", words });
      }}
    >
      <input type="text" aria-label={wants.label} placeholder={wants.without ? `empty for ${wants.without}` : wants.label} required={!wants.without} value={words} onInput={(event) => setWords(event.currentTarget.value)} />
      {choices.map((choice) => (
        <button key={choice} type="button" disabled={isSent} onClick={() => setWords(choice)}>
          {choice}
        </button>
      ))}
      <button type="submit" class="primary" disabled={isSent}>
        Send
      </button>
      <button type="button" class="danger" disabled={isSent} onClick={() => onAnswer({ answer: "no" })}>
        Decline
      </button>
      <button type="button" disabled={isSent} onClick={() => onAnswer({ answer: "cancel" })}>
        Close
      </button>
    </form>
  );
}
