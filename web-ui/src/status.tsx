// The gateway itself: how it is, and the questions that wait in all sessions.

import { useEffect, useState } from "preact/hooks";
import { api } from "./api";
import { Cluster } from "./cluster";
import type { Connection } from "./connection";
import { Ask } from "./parts";
import type { Question } from "./protocol";
import { Servers } from "./servers";

const EVERY = 5_000;

interface Status {
  version: string;
  processId: number;
  url: string;
  seconds: number;
  openMessages: number;
  sockets: number;
  isShared: boolean;
  stateDirectory: string;
}

interface Finding {
  check: string;
  severity: "high" | "medium" | "low";
  message: string;
  fix: string;
}

/** What is open in this set-up, each with the command that closes it. */
function Security({ phase }: { phase: string }) {
  const [findings, setFindings] = useState<Finding[] | null>(null);
  const [error, setError] = useState("");
  useEffect(() => {
    if (phase !== "open") return;
    api<{ findings: Finding[] }>("/api/security").then(
      (answer) => setFindings(answer.findings),
      (failure) => setError((failure as Error).message),
    );
  }, [phase]);
  return (
    <section aria-label="Security">
      <h2>Security</h2>
      {error && <p class="muted">{error}</p>}
      {findings?.length === 0 && <p class="muted">Nothing is open that a check knows.</p>}
      {findings?.map((finding) => (
        <div key={`${finding.check} ${finding.fix}`}>
          <p>
            <strong>{finding.severity}</strong> {finding.message}
          </p>
          <pre>{finding.fix}</pre>
        </div>
      ))}
    </section>
  );
}

function uptime(seconds: number): string {
  const parts = [
    [Math.floor(seconds / 86_400), "d"],
    [Math.floor(seconds / 3_600) % 24, "h"],
    [Math.floor(seconds / 60) % 60, "min"],
    [seconds % 60, "s"],
  ] as const;
  const first = parts.findIndex(([number]) => number > 0);
  return parts
    .slice(Math.max(0, first), Math.max(0, first) + 2)
    .map(([number, unit]) => `${number} ${unit}`)
    .join(" ");
}

export function StatusPage({ connection, phase, onOpen }: { connection: Connection; phase: string; onOpen: (name: string) => void }) {
  const [status, setStatus] = useState<Status | null>(null);
  const [questions, setQuestions] = useState<Question[]>([]);
  const [error, setError] = useState("");
  useEffect(() => {
    if (phase !== "open") return;
    const read = async () => {
      try {
        setStatus(await connection.request<Status>("status"));
        setQuestions((await connection.request<{ approvals: Question[] }>("approvals")).approvals);
        setError("");
      } catch (failure) {
        setError((failure as Error).message);
      }
    };
    void read();
    const timer = setInterval(() => void read(), EVERY);
    return () => clearInterval(timer);
  }, [connection, phase]);
  const rows: [string, string][] = status
    ? [
        ["Version", status.version],
        ["Process", String(status.processId)],
        ["Address", status.url],
        ["Up", uptime(status.seconds)],
        ["Messages without an answer", String(status.openMessages)],
        ["WebSockets", String(status.sockets)],
        ["State directory", status.stateDirectory],
      ]
    : [];
  return (
    <div class="page" tabIndex={0} role="region" aria-label="Gateway">
      <div class="column">
        {error && <p class="failure">{error}</p>}
        <dl class="facts">
          {rows.map(([name, value]) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{value}</dd>
            </div>
          ))}
        </dl>
        <h2>Questions</h2>
        {questions.length === 0 && <p class="muted">No call waits for an approval.</p>}
        {questions.map((question) => (
          <div key={question.id}>
            <button type="button" class="link" onClick={() => onOpen(question.session)}>
              {question.session}
            </button>
            <Ask question={question} onAnswer={(answer) => connection.request("approve", { id: question.id, ...answer })} />
          </div>
        ))}
        {status?.isShared && <Cluster phase={phase} />}
        <Servers phase={phase} />
        <Security phase={phase} />
        <p class="muted">
          <a href="/licenses.md" target="_blank" rel="noopener noreferrer">
            Licences of the packages in this page
          </a>{" "}
          <a href="/licenses-of-mermaid.md" target="_blank" rel="noopener noreferrer">
            and of those that draw diagrams
          </a>
        </p>
      </div>
    </div>
  );
}
