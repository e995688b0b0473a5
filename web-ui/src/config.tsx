// The config as a form: its sections and a search, the changes before they are saved, and what became of them.

import { useEffect, useMemo, useState } from "preact/hooks";
import { api } from "./api";
import { Page, type PageProps, State, useLoad } from "./common";
import { Described, Field, FormOf, type Issue, Issues } from "./config-fields";
import { type Change, changes, diffText, type Json, type Path, pathText, resolved, type Schema, valueAt, withoutEntry, withValue } from "./config-values";
import { Dialog } from "./dialog";
import { Icon } from "./icons";
import { Diff } from "./parts";
import type { RequestError } from "./protocol";
import { visible } from "./text";

/** Most settings that a search shows. */
const MOST_FOUND = 40;

interface Values {
  version: string;
  values?: Json;
  secrets?: Path[];
  problem?: string;
  issues?: Issue[];
  inForce: boolean | null;
  warnings?: string[];
  state: { problem: string | null; needsRestart: string[] } | null;
}

interface Config extends Values {
  file: string;
  found: boolean;
  schema: Schema;
  masked: string;
}

interface Setting {
  path: string[];
  schema: Schema;
}

/** What people change most, in words; the page begins with it. */
const OFTEN: [string, string][] = [
  ["agents.defaults.model", "The model that answers"],
  ["agents.defaults.thinkingDefault", "How much it thinks"],
  ["agents.defaults.identity.name", "The agent's name"],
  ["agents.defaults.workspace", "Where it works"],
  ["agents.defaults.userTimezone", "Your time zone"],
  ["tools.ask", "The tools that ask you first"],
  ["agents.defaults.sandbox.mode", "Which sessions are sandboxed"],
  ["agents.defaults.limits.dayCost", "Most dollars a day"],
  ["agents.defaults.heartbeat.every", "How often it looks by itself whether something is to do"],
  ["memory.learn", "Whether it learns from what was said"],
];
const FIRST = "often changed";

function schemaAt(root: Schema, path: string[]): Schema {
  return path.reduce((schema, step) => resolved(schema, root).properties?.[step] ?? {}, root);
}

/** The settings below a schema whose path needs no name of the owner's own. */
function settings(schema: Schema, root: Schema, path: string[] = []): Setting[] {
  const own = resolved(schema, root);
  if (path.length > 0 && (own.type !== "object" || !own.properties)) return [{ path, schema }];
  return Object.entries(own.properties ?? {}).flatMap(([key, below]) => settings(below, root, [...path, key]));
}

export function ConfigPage({ phase }: PageProps) {
  const loaded = useLoad<Config>("/api/config", phase);
  return (
    <Page name="Config">
      <State loaded={loaded} />
      {loaded.data?.values && <Form key={loaded.data.file} config={loaded.data} onReload={loaded.reload} />}
      {loaded.data?.problem && (
        <p class="failure" role="alert">
          <Icon name="cross" /> {visible(loaded.data.problem)}
        </p>
      )}
    </Page>
  );
}

function Form({ config, onReload }: { config: Config; onReload: () => Promise<void> }) {
  const [base, setBase] = useState<Values>(config);
  const [draft, setDraft] = useState<Json>(config.values);
  const [section, setSection] = useState(FIRST);
  const [search, setSearch] = useState("");
  const [issues, setIssues] = useState<Issue[]>([]);
  const [said, setSaid] = useState("");
  const [isConflict, setConflict] = useState(false);
  const [isAsking, setAsking] = useState(false);
  const { schema, masked } = config;
  const list = useMemo(() => changes(base.values, draft), [base, draft]);
  const all = useMemo(() => settings(schema, schema), [schema]);
  // What the file has now, where nothing was changed yet.
  useEffect(() => {
    if (config.version === base.version || list.length > 0) return;
    setBase(config);
    setDraft(config.values);
    setConflict(false);
  }, [config]);
  useEffect(() => {
    const warn = (event: BeforeUnloadEvent) => event.preventDefault();
    if (list.length > 0) window.addEventListener("beforeunload", warn);
    return () => window.removeEventListener("beforeunload", warn);
  }, [list.length > 0]);

  const save = async () => {
    setSaid("");
    try {
      const answer = await api<Values>("/api/config", { method: "PATCH", body: { version: base.version, changes: list } });
      setBase(answer);
      setDraft(answer.values);
      setIssues([]);
      setSaid(outcome(answer));
    } catch (failure) {
      const error = failure as RequestError;
      const details = error.details as { issues?: Issue[] } | undefined;
      if (error.errorClass === "conflict") {
        setConflict(true);
        return;
      }
      const found = details?.issues ?? [];
      if (found.length === 0) throw error;
      setIssues(found);
      const at = found[0]?.path[0];
      if (typeof at === "string") setSection(at);
      setSearch("");
      setSaid(`Nothing was saved: ${found.length === 1 ? "a value has a mistake" : `${found.length} values have mistakes`}.`);
    }
  };
  /** The changes of single keys, made again to the file as it is now. Those inside of lists are given up. */
  const rebase = async () => {
    const now = await api<Config>("/api/config");
    const kept = list.filter(({ op, path }) => op !== "append" && path.every((step) => typeof step === "string"));
    setBase(now);
    setDraft(kept.reduce((value, { path, value: next }) => withValue(value, path, next), now.values));
    setConflict(false);
    const lost = list.length - kept.length;
    setSaid(lost > 0 ? `The file was read again. Make these changes again: ${list.filter((one) => !kept.includes(one)).map((one) => pathText(one.path)).join(", ")}.` : "The file was read again; your changes are kept.");
    await onReload();
  };

  const form = {
    root: schema,
    draft,
    masked,
    issues,
    set: (path: Path, value: Json) => setDraft((now: Json) => withValue(now, path, value)),
    removeEntry: (path: Path) => setDraft((now: Json) => withoutEntry(now, path, base.values)),
  };
  const words = search.trim().toLowerCase().split(/\s+/).filter(Boolean);
  const found = words.length === 0 ? [] : all.filter((one) => words.every((word) => `${one.path.join(".")} ${one.schema.description ?? ""}`.toLowerCase().includes(word)));
  const names = Object.keys(schema.properties ?? {}).filter((one) => one !== "$schema");
  const secretPaths = new Set((base.secrets ?? []).map(pathText));
  const isSecret = (path: Path) => secretPaths.has(pathText(path)) || isSecretSchema(schema, path);
  const shownIssues = issues.filter((issue) => issue.path.length === 0 || !names.includes(String(issue.path[0])));
  return (
    <FormOf.Provider value={form}>
      <p class="muted small">
        <code>{visible(config.file)}</code>
        {config.found ? "" : " (made with the first change)"}; comments in it are kept.
      </p>
      {base.state?.problem && (
        <p class="failure" role="alert">
          <Icon name="cross" /> The file is not in force: {visible(base.state.problem)}
        </p>
      )}
      <label class="search">
        <Icon name="search" />
        <input type="search" placeholder="Search settings" aria-label="Search settings" value={search} onInput={(event) => setSearch(event.currentTarget.value)} />
      </label>
      <div class="config">
        <nav class="sections" aria-label="Sections">
          {[FIRST, ...names].map((one) => (
            <button
              key={one}
              type="button"
              class={`section ${issues.some((issue) => issue.path[0] === one) ? "has-issue" : ""}`}
              aria-current={words.length === 0 && one === section ? "true" : undefined}
              onClick={() => {
                setSearch("");
                setSection(one);
              }}
            >
              {one}
              {valueAt(draft, [one]) !== valueAt(base.values, [one]) && <span role="img" class="changed" aria-label="changed" />}
            </button>
          ))}
        </nav>
        <div class="settings-column">
          {words.length > 0 ? (
            <section aria-label="Found settings">
              <h2>{found.length === 0 ? "No setting has these words" : `${found.length} settings`}</h2>
              {found.slice(0, MOST_FOUND).map((one) => (
                <Field key={pathText(one.path)} schema={one.schema} path={one.path} at={one.path} name={pathText(one.path)} />
              ))}
              {found.length > MOST_FOUND && <p class="muted">Only the first {MOST_FOUND} are shown; add a word.</p>}
            </section>
          ) : section === FIRST ? (
            <section aria-label={FIRST}>
              <h2>{FIRST}</h2>
              {OFTEN.map(([name, words]) => (
                <Field key={name} schema={schemaAt(schema, name.split("."))} path={name.split(".")} at={name.split(".")} name={words} />
              ))}
            </section>
          ) : (
            <section aria-label={section}>
              <h2>{section}</h2>
              <p class="muted">
                <Described text={schema.properties?.[section]?.description} />
              </p>
              <Field key={section} schema={schema.properties?.[section] ?? {}} path={[section]} at={[section]} name={section} />
            </section>
          )}
        </div>
      </div>
      <Issues issues={shownIssues} />
      {isConflict && (
        <p class="failure" role="alert">
          The file was changed by something else since this form was made. Nothing was saved.{" "}
          <button type="button" onClick={() => void rebase()}>
            Read it again
          </button>
        </p>
      )}
      <div class="save-bar" role="group" aria-label="Changes">
        <span class="grow" role="status">
          {list.length > 0 ? `${list.length} ${list.length === 1 ? "change" : "changes"}, not saved. ` : ""}
          {said}
        </span>
        <button
          type="button"
          disabled={list.length === 0}
          onClick={() => {
            setDraft(base.values);
            setIssues([]);
            setSaid("");
          }}
        >
          Discard
        </button>
        <button type="button" class="primary" disabled={list.length === 0} onClick={() => setAsking(true)}>
          Review and save
        </button>
      </div>
      {isAsking && (
        <Dialog title="Save these changes?" action="Save" onClose={() => setAsking(false)} onConfirm={save}>
          <Diff text={diffText(base.values, list as Change[], isSecret, masked)} />
          <p class="muted small">The file is checked first. A running gateway takes it over at once.</p>
        </Dialog>
      )}
    </FormOf.Provider>
  );
}

function isSecretSchema(root: Schema, path: Path): boolean {
  let now: Schema[] = [root];
  for (const step of path) {
    now = now
      .map((one) => resolved(one, root))
      .flatMap((one) => [one, ...(one.anyOf ?? []).map((other) => resolved(other, root))])
      .flatMap((one) => {
        const below = typeof step === "number" ? one.items : (one.properties?.[step] ?? one.additionalProperties);
        return typeof below === "object" ? [below] : [];
      });
  }
  return now.some((one) => resolved(one, root).writeOnly);
}

function outcome({ inForce, state, warnings }: Values): string {
  const parts: string[] = [];
  if (inForce) parts.push("Saved, and in force.");
  else if (inForce === false) parts.push(`Saved, but not in force: ${visible(state?.problem ?? "")}.`);
  else parts.push("Saved. The gateway has not said yet whether it is in force.");
  if (state && state.needsRestart.length > 0) parts.push(`Restart the gateway to use the new ${state.needsRestart.join(", ")}.`);
  return [...parts, ...(warnings ?? []).map((one) => `Warning: ${visible(one)}.`)].join(" ");
}
