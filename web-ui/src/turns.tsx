// What one can do with what was said: copy it, say it again or in other words, and go to another branch.

import { useEffect, useRef, useState } from "preact/hooks";
import { Copy } from "./copy";
import { Icon } from "./icons";
import { Picture } from "./parts";
import type { Branch, ImageBlock, Row } from "./protocol";
import { blocksOf } from "./session";
import { useSpeech } from "./speech";
import { count, money, visible } from "./text";
import { ReadAloud } from "./voice-buttons";

/** The branches at a place of a session, of which one is shown. */
export interface Fork {
  branches: Branch[];
  shown: number;
}

/**
 * The branches that part behind the message `last`, or at the beginning: the sessions that were forked there, and those that
 * go on from there. Ids of messages sort by time.
 */
export function forkAt(all: Branch[], key: string, last: string | null): Fork | null {
  const forks = all.filter((branch) => branch.from && branch.at === last);
  if (forks.length === 0) return null;
  const byKey = new Map(all.map((branch) => [branch.key, branch]));
  /** The session of the family whose message behind `last` a branch shows. */
  const owner = (of: string | null) => {
    let branch = byKey.get(of ?? "");
    while (branch?.from && branch.at !== null && (last === null || branch.at > last)) {
      const parent = byKey.get(branch.from);
      if (!parent) break;
      branch = parent;
    }
    return branch;
  };
  const members = new Set([...forks, ...forks.map((fork) => owner(fork.from))]);
  const branches = all.filter((branch) => members.has(branch));
  const own = owner(key);
  const shown = own ? branches.indexOf(own) : -1;
  return shown >= 0 && branches.length > 1 ? { branches, shown } : null;
}

function Branches({ fork, onOpen }: { fork: Fork; onOpen: (name: string) => void }) {
  const { branches, shown } = fork;
  const button = (step: number, label: string, icon: string) => {
    const to = branches[shown + step];
    return (
      <button type="button" class="icon-button" aria-label={label} title={to && visible(to.title ?? to.name)} disabled={!to} onClick={() => to && onOpen(to.name)}>
        <Icon name={icon} />
      </button>
    );
  };
  return (
    <span class="branches" role="group" aria-label="Branches">
      {button(-1, "Previous branch", "left")}
      {shown + 1} of {branches.length}
      {button(1, "Next branch", "right")}
    </span>
  );
}

interface MineProps {
  row: Row;
  fork: Fork | null;
  /** Whether a branch can begin here now. */
  isFree: boolean;
  onOpen: (name: string) => void;
  /** Begins a branch in which `text` is said in place of this. */
  onSay: (text: string) => Promise<unknown>;
}

/** A message of the owner in the log. */
export function Mine({ row, fork, isFree, onOpen, onSay }: MineProps) {
  const [isEdited, setEdited] = useState(false);
  const images = blocksOf(row).filter((block): block is ImageBlock => block.type === "image");
  if (isEdited) return <Edit text={row.content} onSay={onSay} onEnd={() => setEdited(false)} />;
  return (
    <>
      <article class="message user" aria-label="you">
        {images.map((block, number) => (
          <Picture key={number} block={block} />
        ))}
        {row.content && <p>{row.content}</p>}
      </article>
      <div class="under mine">
        {fork && <Branches fork={fork} onOpen={onOpen} />}
        <Copy label="Copy your message" text={row.content} />
        {isFree && (
          <button type="button" class="icon-button" aria-label="Edit your message" title="Edit: begins a branch" onClick={() => setEdited(true)}>
            <Icon name="edit" />
          </button>
        )}
      </div>
    </>
  );
}

function Edit({ text, onSay, onEnd }: { text: string; onSay: (text: string) => Promise<unknown>; onEnd: () => void }) {
  const [now, setNow] = useState(text);
  const [isSent, setSent] = useState(false);
  const [error, setError] = useState("");
  const area = useRef<HTMLTextAreaElement>(null);
  useEffect(() => area.current?.focus(), []);
  const say = () => {
    setSent(true);
    setError("");
    onSay(now).catch((failure: Error) => {
      setSent(false);
      setError(failure.message);
    });
  };
  return (
    <form
      class="edit"
      onSubmit={(event) => {
        event.preventDefault();
        if (now.trim()) say();
      }}
      onKeyDown={(event) => {
        if (event.key === "Escape") onEnd();
        if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && now.trim() && !isSent) say();
      }}
    >
      <textarea ref={area} aria-label="Your message" rows={Math.min(12, now.split("\n").length + 1)} value={now} onInput={(event) => setNow(event.currentTarget.value)} />
      <p class="muted">The branch begins here. What was said so far stays in the other one, and files stay as they are.</p>
      {error && (
        <p class="error" role="alert">
          {error}
        </p>
      )}
      <div class="buttons">
        <button type="button" onClick={onEnd}>
          Cancel
        </button>
        <button type="submit" class="primary" disabled={isSent || !now.trim()}>
          Send in a branch
        </button>
      </div>
    </form>
  );
}

interface FootProps {
  /** The answers of the turn. */
  answers: Row[];
  isFree: boolean;
  onRetry?: () => Promise<unknown>;
}

/** Below an answer: what one can do with it, who gave it, and what the turn has used. */
export function Foot({ answers, isFree, onRetry }: FootProps) {
  const [isSent, setSent] = useState(false);
  const [error, setError] = useState("");
  const { speaks } = useSpeech();
  const last = answers.at(-1);
  if (!last) return null;
  const used = { input: 0, output: 0, cost: 0, isUnpriced: false };
  for (const { meta } of answers) {
    const usage = meta?.usage;
    if (!usage) continue;
    used.input += usage.input + usage.cacheRead + usage.cacheWrite;
    used.output += usage.output;
    used.cost += usage.cost?.total ?? 0;
    used.isUnpriced ||= !!usage.cost?.unpricedCalls;
  }
  const cost = used.isUnpriced ? "price unknown" : used.cost > 0 ? money(used.cost) : "";
  const facts = [
    [last.meta?.provider, last.meta?.model].filter(Boolean).join("/"),
    used.input + used.output > 0 ? `${count(used.input)} tokens in, ${count(used.output)} out` : "",
    cost,
  ];
  return (
    <div class="under">
      {last.content && <Copy label="Copy the answer" text={last.content} />}
      {speaks && last.content && <ReadAloud text={last.content} />}
      {isFree && onRetry && (
        <button
          type="button"
          class="icon-button"
          aria-label="Ask again"
          title="Ask again: begins a branch"
          disabled={isSent}
          onClick={() => {
            setSent(true);
            onRetry().catch((failure: Error) => {
              setSent(false);
              setError(failure.message);
            });
          }}
        >
          <Icon name="refresh" />
        </button>
      )}
      <span class="note">{visible(facts.filter(Boolean).join(" · "))}</span>
      {error && (
        <span class="error" role="alert">
          {error}
        </span>
      )}
    </div>
  );
}
