// What the agent has planned and changed in a session.

import { useEffect, useState } from "preact/hooks";
import { Icon } from "./icons";
import { Diff } from "./parts";
import type { Change, PlanStep } from "./protocol";
import type { SessionView } from "./session";
import { visible } from "./text";

const WORDS: Record<PlanStep["status"], string> = { pending: "to do", in_progress: "being done", completed: "done" };
const ICONS: Record<PlanStep["status"], string> = { pending: "dot", in_progress: "play", completed: "check" };

/** The steps of the agent's plan, as `/todos` shows them in the terminal. */
export function Plan({ steps }: { steps: PlanStep[] }) {
  const done = steps.filter((step) => step.status === "completed").length;
  return (
    <details class="plan" open={done < steps.length}>
      <summary>
        Plan: {done} of {steps.length} done
      </summary>
      <ol>
        {steps.map((step, number) => (
          <li key={number} class={step.status}>
            <Icon name={ICONS[step.status]} />
            <span>{visible(step.text)}</span>
            <span class="note">{WORDS[step.status]}</span>
          </li>
        ))}
      </ol>
    </details>
  );
}

/** What the agent's tools have changed in the session and is different now. */
export function Changes({ view, onClose }: { view: SessionView; onClose: () => void }) {
  const [files, setFiles] = useState<Change[] | null>(null);
  const [error, setError] = useState("");
  useEffect(() => {
    view.changes().then(setFiles, (failure: Error) => setError(failure.message));
  }, [view]);
  return (
    <section class="changes" aria-label="Changes of this session">
      <header>
        <h3>Changes of this session</h3>
        <button type="button" class="icon-button" aria-label="Close the changes" onClick={onClose}>
          <Icon name="cross" />
        </button>
      </header>
      {error && (
        <p class="error" role="alert">
          {error}
        </p>
      )}
      {files?.length === 0 && <p class="muted">Nothing is different now of what the agent's tools changed here.</p>}
      {files?.map((file) => (
        <div key={file.path}>
          <h4>{visible(file.path)}</h4>
          {file.diff ? <Diff text={file.diff} /> : <p class="muted">It {visible(file.notCompared ?? "is the same")}.</p>}
        </div>
      ))}
    </section>
  );
}
