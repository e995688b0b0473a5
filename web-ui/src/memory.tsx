// What an agent remembers: see, search, correct, delete, and why it is known.

import { useState } from "preact/hooks";
import { AgentChoice } from "./agents";
import { api } from "./api";
import { Act, Mark, Page, type PageProps, State, useLoad } from "./common";
import { Dialog } from "./dialog";
import { Icon } from "./icons";
import { visible } from "./text";

interface Fact {
  id: string;
  text: string;
  date?: string;
  person?: string;
  session?: string;
  after?: string[];
  isLearned?: boolean;
  until?: { date: string; now?: string };
}

interface Passage {
  path?: string;
  session?: string;
  date?: string;
  text: string;
}

/** The address of the facts of an agent, or of one of them. */
function address(agent: string, rest = "", query: Record<string, string> = {}): string {
  const all = new URLSearchParams(agent ? { agent, ...query } : query).toString();
  return `/api/memory${rest}${all && `?${all}`}`;
}

function Words({ title, action, text, onSave, onClose }: { title: string; action: string; text: string; onSave: (text: string) => Promise<unknown>; onClose: () => void }) {
  const [words, setWords] = useState(text);
  return (
    <Dialog title={title} action={action} onClose={onClose} onConfirm={() => onSave(words)}>
      <label>
        The fact, as the agent should remember it
        <textarea rows={3} required value={words} onInput={(event) => setWords(event.currentTarget.value)} />
      </label>
    </Dialog>
  );
}

/** Where a fact comes from, in words. */
function origin(fact: Fact): string {
  if (!fact.date) return "written into the file";
  const parts = [fact.date, `from ${fact.person || "owner"}`];
  if (fact.isLearned) parts.push("learned from the conversation");
  if (fact.after?.length) parts.push(`after ${fact.after.join(", ")}`);
  return parts.join(" · ");
}

function FactCard({ fact, agent, onChange, onOpenSession }: { fact: Fact; agent: string; onChange: () => Promise<void> } & Pick<PageProps, "onOpenSession">) {
  const [open, setOpen] = useState<"edit" | "forget" | null>(null);
  const [said, setSaid] = useState<string | null>(null);
  const path = address(agent, `/${encodeURIComponent(fact.id)}`);
  const why = async () => {
    const answer = await api<{ said: string | null }>(path);
    setSaid(answer.said ?? "The message is not there any more, or you wrote the fact into the file.");
  };
  return (
    <article class="card" aria-label={`fact ${fact.id}`}>
      <p>{fact.until ? <s>{visible(fact.text)}</s> : visible(fact.text)}</p>
      <p class="muted small">
        <code>{fact.id}</code> · {visible(origin(fact))}
        {fact.until && ` · until ${fact.until.date}`} {fact.after?.length ? <Mark kind="ask">text of others was read before</Mark> : null}
      </p>
      {said !== null && (
        <blockquote role="status" class="small">
          {visible(said)}
        </blockquote>
      )}
      <div class="buttons">
        <Act label="Why?" icon="question" onAct={why} />
        {fact.session && (
          <button type="button" class="act" onClick={() => onOpenSession(fact.session!)}>
            Open the session
          </button>
        )}
        <button type="button" class="act" onClick={() => setOpen("edit")}>
          <Icon name="edit" />
          Correct
        </button>
        <button type="button" class="act danger" onClick={() => setOpen("forget")}>
          <Icon name="trash" />
          Forget
        </button>
      </div>
      {open === "edit" && (
        <Words
          title="Correct the fact"
          action="Save"
          text={fact.text}
          onSave={(text) => api(path, { method: "PUT", body: { text } }).then(onChange)}
          onClose={() => setOpen(null)}
        />
      )}
      {open === "forget" && (
        <Dialog title="Forget this?" action="Forget" isDangerous onClose={() => setOpen(null)} onConfirm={() => api(path, { method: "DELETE" }).then(onChange)}>
          <p>{visible(fact.text)}</p>
          <p class="muted">
            It goes from the notes and the search. Messages that say it stay in their sessions; <code>myclaw memory forget {fact.id} --redact</code> removes its words there too.
          </p>
        </Dialog>
      )}
    </article>
  );
}

/** What fits some words, in the notes and in the sessions. */
function Found({ query, agent, phase, onOpenSession }: { query: string; agent: string; phase: string; onOpenSession: (name: string) => void }) {
  const loaded = useLoad<{ passages: Passage[]; remarks: string[] }>(address(agent, "/search", { query }), phase);
  const { passages = [], remarks = [] } = loaded.data ?? {};
  return (
    <section aria-label="Found">
      <h2>Found</h2>
      <State loaded={loaded} isEmpty={passages.length === 0}>
        <p class="muted">Nothing fits; try other words.</p>
      </State>
      <ul class="lines">
        {passages.map((passage, at) => (
          <li key={at}>
            <span class="grow">
              {visible(passage.text)} <span class="muted small">{visible(passage.path ?? passage.date ?? "")}</span>
            </span>
            {passage.session && (
              <button type="button" class="act" onClick={() => onOpenSession(passage.session!)}>
                Open
              </button>
            )}
          </li>
        ))}
      </ul>
      {remarks.map((remark) => (
        <p key={remark} class="muted small">
          {visible(remark)}
        </p>
      ))}
    </section>
  );
}

export function MemoryPage({ phase, onOpenSession }: PageProps) {
  const [agent, setAgent] = useState("");
  const [isAdding, setAdding] = useState(false);
  const [showsOld, setShowsOld] = useState(false);
  const [query, setQuery] = useState("");
  const [asked, setAsked] = useState("");
  const loaded = useLoad<{ agent: string; facts: Fact[]; path: string }>(address(agent), phase);
  const facts = loaded.data?.facts ?? [];
  const shown = facts.filter((fact) => showsOld || !fact.until);
  return (
    <Page name="Memory">
      <AgentChoice value={agent || loaded.data?.agent} phase={phase} onChange={setAgent} />
      <div class="controls">
        <form
          class="grow"
          role="search"
          onSubmit={(event) => {
            event.preventDefault();
            setAsked(query.trim());
          }}
        >
          <input type="search" aria-label="Search notes and sessions" placeholder="Search notes and sessions" value={query} onInput={(event) => setQuery(event.currentTarget.value)} />
        </form>
        <button type="button" class="primary act" onClick={() => setAdding(true)}>
          <Icon name="plus" />
          Remember
        </button>
      </div>
      {asked && <Found query={asked} agent={agent} phase={phase} onOpenSession={onOpenSession} />}
      <h2>Facts</h2>
      <State loaded={loaded} isEmpty={facts.length === 0}>
        <p class="muted">Nothing is remembered yet. Tell the agent to remember something, or add it here.</p>
      </State>
      <div class="cards">
        {shown.map((fact) => (
          <FactCard key={fact.id} fact={fact} agent={agent} onChange={loaded.reload} onOpenSession={onOpenSession} />
        ))}
      </div>
      {facts.some((fact) => fact.until) && (
        <label>
          <input type="checkbox" checked={showsOld} onChange={(event) => setShowsOld(event.currentTarget.checked)} /> Show what holds no more
        </label>
      )}
      {loaded.data && (
        <p class="muted small">
          They are in <code>{visible(loaded.data.path)}</code>, which you can edit too.
        </p>
      )}
      {isAdding && (
        <Words title="Remember a fact" action="Remember" text="" onSave={(text) => api(address(agent), { method: "POST", body: { text } }).then(loaded.reload)} onClose={() => setAdding(false)} />
      )}
    </Page>
  );
}
