// The sessions of the gateway's machine that work at this moment, in the gateway and in other programs.

import { useEffect, useState } from "preact/hooks";
import { api } from "./api";
import { Act, Mark, Page, type PageProps, State, useLoad } from "./common";
import { brief } from "./parts";
import { duration, money, visible } from "./text";

const EVERY = 2_000;

interface Asked {
  toolCallId: string;
  tool: string;
  call: string;
  reason: string;
  /** Set if it can be answered where the session is, and nowhere else. */
  begun?: unknown;
}

interface Running {
  session: string;
  name: string;
  model?: string;
  since: number;
  doing: { what: "model" } | { what: "tools"; calls: { toolCallId: string; tool: string; arguments: Record<string, unknown> }[] };
  microDollars: number;
  questions: Asked[];
}

function doing(session: Running): string {
  if (session.doing.what === "model") return session.model ? `waits for ${session.model}` : "waits for the model";
  return session.doing.calls.map((call) => `${call.tool} ${brief(call.arguments)}`).join("; ");
}

export function RunningPage({ phase, onOpenSession }: PageProps) {
  const loaded = useLoad<{ sessions: Running[] }>("/api/running", phase, EVERY);
  const [, tick] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => tick((number) => number + 1), 1_000);
    return () => clearInterval(timer);
  }, []);
  const sessions = loaded.data?.sessions ?? [];
  const post = (change: string, body: object) => api(`/api/running/${change}`, { method: "POST", body }).then(loaded.reload);
  return (
    <Page name="Running">
      <State loaded={loaded} isEmpty={sessions.length === 0}>
        <h2>Nothing works at this moment</h2>
        <p class="muted">Turns of the page, of channels, schedules and terminals on the gateway's machine appear here while they go on.</p>
      </State>
      <div class="cards">
        {sessions.map((one) => (
          <article key={one.session} class="card" aria-label={one.name}>
            <header>
              <h2>{visible(one.name)}</h2>
              <Mark kind={one.questions.length ? "ask" : "good"}>{one.questions.length ? "asks" : "works"}</Mark>
            </header>
            <p>{visible(doing(one))}</p>
            <p class="muted">
              {duration(Math.max(0, Date.now() - one.since))} · {money(one.microDollars / 1_000_000)}
            </p>
            {one.questions.map((question) => (
              <div key={question.toolCallId} role="group" aria-label={`question about ${question.tool}`}>
                <p>
                  {visible(question.reason)}: <code>{visible(question.call)}</code>
                </p>
                {!question.begun && (
                  <div class="acts">
                    <Act label="Allow once" icon="check" onAct={() => post("answer", { session: one.session, toolCallId: question.toolCallId, answer: "yes" })} />
                    <Act label="No" icon="cross" isDangerous onAct={() => post("answer", { session: one.session, toolCallId: question.toolCallId, answer: "no" })} />
                  </div>
                )}
              </div>
            ))}
            <div class="acts">
              <button type="button" class="act" onClick={() => onOpenSession(one.name)}>
                Open
              </button>
              <Act label="Stop" icon="stop" isDangerous onAct={() => post("stop", { session: one.session })} />
            </div>
          </article>
        ))}
      </div>
    </Page>
  );
}
