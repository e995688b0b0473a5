// Scheduled jobs: what is planned, what became of it, and new ones.

import { useState } from "preact/hooks";
import { api } from "./api";
import { Act, Mark, Page, type PageProps, State, useLoad } from "./common";
import { Dialog } from "./dialog";
import { Icon } from "./icons";
import { fromNow, fullMoment, visible } from "./text";

const EVERY = 5_000;

type Schedule = { kind: "at"; atMs: number } | { kind: "every"; everyMs: number } | { kind: "cron"; expr: string; tz: string };

interface Outcome {
  outcome: "answered" | "quiet" | "skipped" | "missed" | "failed";
  said?: string;
  reason?: string;
  until?: number;
  class?: string;
  message?: string;
}

interface Job {
  id: string;
  name: string;
  agent: string;
  enabled: boolean;
  schedule: Schedule;
  work: { kind: "heartbeat" } | { kind: "message"; text: string; target: "main" | "isolated" };
  next: number | null;
  last: { due: number; endedAt: number; outcome: Outcome } | null;
}

interface Run {
  due: number;
  manual: boolean;
  state: { state: "planned" | "running" | "ended"; outcome?: Outcome; session?: string };
}

const cron = <T,>(body: object) => api<T>("/api/cron", { method: "POST", body });

function length(milliseconds: number): string {
  for (const [unit, name] of [
    [86_400_000, "day"],
    [3_600_000, "hour"],
    [60_000, "minute"],
    [1_000, "second"],
  ] as const) {
    if (milliseconds % unit === 0) {
      const number = milliseconds / unit;
      return number === 1 ? name : `${number} ${name}s`;
    }
  }
  return `${milliseconds} ms`;
}

function when(schedule: Schedule): string {
  if (schedule.kind === "at") return `once, ${fullMoment(schedule.atMs)}`;
  if (schedule.kind === "every") return `every ${length(schedule.everyMs)}`;
  return `${schedule.expr} (${schedule.tz})`;
}

function OutcomeMark({ outcome }: { outcome: Outcome }) {
  const kind = outcome.outcome === "answered" || outcome.outcome === "quiet" ? "good" : outcome.outcome === "failed" ? "bad" : "ask";
  return <Mark kind={kind}>{outcome.outcome}</Mark>;
}

function detail(outcome: Outcome): string {
  if (outcome.outcome === "missed") return `up to ${fullMoment(outcome.until ?? 0)}`;
  if (outcome.outcome === "quiet") return "nothing to report";
  return outcome.said ?? outcome.reason ?? outcome.message ?? "";
}

/** What became of a job's due times, read while it is open. */
function Runs({ job, phase, onOpenSession }: { job: string; phase: string; onOpenSession: (name: string) => void }) {
  const [runs, setRuns] = useState<Run[] | null>(null);
  const [error, setError] = useState("");
  const read = (isOpen: boolean) => {
    if (!isOpen || phase !== "open") return;
    cron<{ runs: Run[] }>({ action: "runs", id: job, limit: 20 }).then(
      (answer) => setRuns(answer.runs),
      (failure: Error) => setError(failure.message),
    );
  };
  return (
    <details class="more" onToggle={(event) => read(event.currentTarget.open)}>
      <summary>Runs</summary>
      {error && <p class="failure">{error}</p>}
      {runs?.length === 0 && <p class="muted">Nothing was due yet.</p>}
      <ul class="lines">
        {runs?.map((run) => {
          const { outcome, session } = run.state;
          return (
            <li key={`${run.due}-${run.manual}`}>
              <span class="when">{fullMoment(run.due)}</span>
              {outcome ? <OutcomeMark outcome={outcome} /> : <Mark kind="plain">{run.state.state === "running" ? "running" : "planned"}</Mark>}
              <span class="grow">
                {run.manual && <span class="muted">by hand · </span>}
                {outcome && visible(detail(outcome))}
              </span>
              {session && (
                <button type="button" class="link" onClick={() => onOpenSession(session)}>
                  Open
                </button>
              )}
            </li>
          );
        })}
      </ul>
    </details>
  );
}

function JobCard({ job, phase, onChange, onOpenSession }: { job: Job; phase: string; onChange: () => Promise<void>; onOpenSession: (name: string) => void }) {
  const [isRemoving, setRemoving] = useState(false);
  const [isEditing, setEditing] = useState(false);
  const isHeartbeat = job.work.kind === "heartbeat";
  /** Its single time is past and was dealt with. */
  const isOver = !job.enabled && job.schedule.kind === "at" && job.last?.due === job.schedule.atMs;
  const change = (body: object) => cron({ id: job.id, ...body }).then(onChange);
  return (
    <article class="card" aria-label={job.name}>
      <header>
        <h2>{visible(isHeartbeat ? `Heartbeat of ${job.agent}` : job.name)}</h2>
        {isOver ? <Mark kind="plain">over</Mark> : !job.enabled ? <Mark kind="ask">paused</Mark> : job.next ? <Mark kind="good">active</Mark> : <Mark kind="plain">not due</Mark>}
      </header>
      {job.work.kind === "message" && <p class="quote">{visible(job.work.text)}</p>}
      <dl class="pairs">
        <div>
          <dt>When</dt>
          <dd>{when(job.schedule)}</dd>
        </div>
        <div>
          <dt>Next</dt>
          <dd>{job.enabled && job.next ? <span title={fullMoment(job.next)}>{fromNow(job.next)}</span> : "–"}</dd>
        </div>
        <div>
          <dt>Agent</dt>
          <dd>
            {job.agent}
            {job.work.kind === "message" && job.work.target === "isolated" ? ", own session" : ""}
          </dd>
        </div>
        <div>
          <dt>Last</dt>
          <dd>
            {job.last ? (
              <>
                <OutcomeMark outcome={job.last.outcome} /> <span title={fullMoment(job.last.endedAt)}>{fromNow(job.last.endedAt)}</span>
              </>
            ) : (
              "–"
            )}
          </dd>
        </div>
      </dl>
      <div class="buttons">
        <Act label="Run now" icon="play" onAct={() => change({ action: "run" })} />
        {!isHeartbeat &&
          !isOver &&
          (job.enabled ? (
            <Act label="Pause" icon="pause" onAct={() => change({ action: "update", patch: { enabled: false } })} />
          ) : (
            <Act label="Resume" icon="play" onAct={() => change({ action: "update", patch: { enabled: true } })} />
          ))}
        {!isHeartbeat && (
          <button type="button" class="act" onClick={() => setEditing(true)}>
            Edit
          </button>
        )}
        {!isHeartbeat && (
          <button type="button" class="act danger" onClick={() => setRemoving(true)}>
            <Icon name="trash" />
            Remove
          </button>
        )}
      </div>
      <Runs job={job.id} phase={phase} onOpenSession={onOpenSession} />
      {isEditing && <JobForm job={job} onClose={() => setEditing(false)} onDone={onChange} />}
      {isRemoving && (
        <Dialog title="Remove this job?" action="Remove" isDangerous onClose={() => setRemoving(false)} onConfirm={() => change({ action: "remove" })}>
          <p>
            <b>{visible(job.name)}</b> and the record of its runs are removed. What was said in its sessions stays.
          </p>
        </Dialog>
      )}
    </article>
  );
}

const HINTS = {
  every: ["Interval, such as 30m, 2h or 1d", "1h"],
  expr: ["Cron expression: minute, hour, day, month, day of the week", "0 9 * * 1-5"],
  at: ["Date and time", ""],
} as const;

/** What the form shows of a schedule: the time zone of a moment is that of the browser. */
function written(schedule: Schedule): [keyof typeof HINTS, string] {
  if (schedule.kind === "cron") return ["expr", schedule.expr];
  if (schedule.kind === "every") {
    const [unit, letter] = ([[86_400_000, "d"], [3_600_000, "h"], [60_000, "m"], [1_000, "s"]] as const).find(([one]) => schedule.everyMs % one === 0) ?? [1_000, "s"];
    return ["every", `${schedule.everyMs / unit}${letter}`];
  }
  const date = new Date(schedule.atMs);
  return ["at", new Date(schedule.atMs - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16)];
}

/** A new job, or changes of one that there is. */
function JobForm({ job, onClose, onDone }: { job?: Job; onClose: () => void; onDone: () => Promise<void> }) {
  const [firstKind, firstValue] = job ? written(job.schedule) : (["every", ""] as const);
  const firstMessage = job?.work.kind === "message" ? job.work.text : "";
  const [message, setMessage] = useState(firstMessage);
  const [name, setName] = useState(job?.name ?? "");
  const [kind, setKind] = useState<keyof typeof HINTS>(firstKind);
  const [value, setValue] = useState<string>(firstValue);
  const [target, setTarget] = useState("isolated");
  const [delivery, setDelivery] = useState("last");
  const [missed, setMissed] = useState("once");
  const tz = job?.schedule.kind === "cron" && kind === "expr" ? job.schedule.tz : Intl.DateTimeFormat().resolvedOptions().timeZone;
  const [hint, example] = HINTS[kind];
  const save = () => {
    const schedule = { [kind]: value || example, ...(kind === "every" ? {} : { tz }) };
    if (job) {
      // Only what was changed: a new schedule is planned anew.
      const patch: Record<string, unknown> = {};
      if (message !== firstMessage) patch.message = message;
      if (name.trim() && name !== job.name) patch.name = name;
      if (kind !== firstKind || value !== firstValue) patch.schedule = schedule;
      if (Object.keys(patch).length === 0) return Promise.resolve();
      return cron({ action: "update", id: job.id, patch }).then(onDone);
    }
    return cron({ action: "add", job: { message, schedule, target, delivery, missed, ...(name.trim() ? { name } : {}) } }).then(onDone);
  };
  const changeKind = (word: string) => {
    setKind(word as keyof typeof HINTS);
    setValue("");
  };
  const select = (label: string, current: string, set: (value: string) => void, values: [string, string][]) => (
    <label>
      {label}
      <select value={current} onChange={(event) => set(event.currentTarget.value)}>
        {values.map(([word, text]) => (
          <option key={word} value={word}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
  return (
    <Dialog title={job ? "Change the job" : "New job"} action={job ? "Save" : "Add"} onClose={onClose} onConfirm={save}>
      <label>
        What the agent is told
        <textarea rows={3} required value={message} onInput={(event) => setMessage(event.currentTarget.value)} />
      </label>
      <label>
        Name; empty takes the first words
        <input value={name} maxLength={100} onInput={(event) => setName(event.currentTarget.value)} />
      </label>
      {select("When", kind, changeKind, [
        ["every", "At an interval"],
        ["expr", "At times of day"],
        ["at", "Once"],
      ])}
      <label>
        {hint}
        {kind === "at" ? (
          <input type="datetime-local" required value={value} onInput={(event) => setValue(event.currentTarget.value)} />
        ) : (
          <input placeholder={example} value={value} spellcheck={false} onInput={(event) => setValue(event.currentTarget.value)} />
        )}
      </label>
      {kind !== "every" && <p class="muted small">In the time zone {tz}.</p>}
      {!job && (
        <>
          {select("Session", target, setTarget, [
            ["isolated", "One of its own"],
            ["main", "The agent's main session"],
          ])}
          {select("The answer goes", delivery, setDelivery, [
            ["last", "to where you wrote last"],
            ["none", "nowhere; it stays in the session"],
          ])}
          {select("Due times that have passed", missed, setMissed, [
            ["once", "one run stands for all"],
            ["skip", "are skipped"],
            ["all", "run one after the other"],
          ])}
        </>
      )}
    </Dialog>
  );
}

export function SchedulesPage({ phase, onOpenSession }: PageProps) {
  const loaded = useLoad<{ jobs: Job[] }>("/api/cron", phase, EVERY);
  const [isAdding, setAdding] = useState(false);
  const jobs = loaded.data?.jobs ?? [];
  return (
    <Page name="Schedules">
      <div class="controls">
        <p class="muted grow">What the agent does by itself: once, at an interval, or at times of day.</p>
        <button type="button" class="primary act" onClick={() => setAdding(true)}>
          <Icon name="plus" />
          New job
        </button>
      </div>
      <State loaded={loaded} isEmpty={jobs.length === 0}>
        <h2>Nothing is planned</h2>
        <p class="muted">Add a job, or ask the agent to remind you of something.</p>
      </State>
      <div class="cards">
        {jobs.map((job) => (
          <JobCard key={job.id} job={job} phase={phase} onChange={loaded.reload} onOpenSession={onOpenSession} />
        ))}
      </div>
      {isAdding && <JobForm onClose={() => setAdding(false)} onDone={loaded.reload} />}
    </Page>
  );
}
