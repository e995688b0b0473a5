// The agents of the config, and the skills that each has.

import { useState } from "preact/hooks";
import { Mark, Page, type PageProps, State, useLoad } from "./common";
import { fromNow, visible } from "./text";

interface Agent {
  id: string;
  name: string | null;
  isDefault: boolean;
  model: string | null;
  fallbacks: string[];
  workspace: string;
  profile: string | null;
  tools: string[] | null;
  sandbox: string;
  sandboxLevel: string;
  sandboxNetwork: string;
  identity: { name?: string; theme?: string; emoji?: string };
  subagents: { mayStart: string[]; model: string | null; maxDepth: number; maxChildren: number };
  skills: number;
  usableSkills: number;
  bindings: { channel: string; account?: string; peer?: string | number; group?: string | number }[];
  heartbeatSeconds: number | null;
  mainSession: string;
  sessions: number;
  lastUsedAt: number | null;
}

const SANDBOXED: Record<string, string> = { off: "no session", "non-main": "all but the main session", all: "all sessions" };

const REACH: Record<string, string> = { none: "no network", allowlist: "listed hosts only", open: "open network" };

/** The messages that a binding gives to an agent. */
function bound({ channel, account, peer, group }: Agent["bindings"][number]): string {
  const narrower = [
    account === undefined ? "" : `account ${account}`,
    peer === undefined ? "" : `from ${peer}`,
    group === undefined ? "" : `group ${group}`,
  ];
  return [channel, ...narrower.filter(Boolean)].join(", ");
}

/** What an agent may start beside itself, and how many at a time. */
function subagentsOf({ id, subagents }: Agent): string {
  const { mayStart, maxDepth, maxChildren, model } = subagents;
  if (maxDepth === 0) return "none";
  const deep = maxDepth > 1 ? `, nested up to ${maxDepth} deep` : "";
  return `${[id, ...mayStart].join(", ")}; at most ${maxChildren} at a time${deep}${model ? `; model ${model}` : ""}`;
}

export function AgentsPage({ phase, onOpenSession }: PageProps) {
  const loaded = useLoad<{ agents: Agent[] }>("/api/agents", phase);
  return (
    <Page name="Agents">
      <State loaded={loaded} />
      <div class="cards">
        {loaded.data?.agents.map((agent) => (
          <article key={agent.id} class="card" aria-label={agent.id}>
            <header>
              <h2>
                {agent.identity.emoji ? `${visible(agent.identity.emoji)} ` : ""}
                {visible(agent.identity.name ?? agent.name ?? agent.id)}
              </h2>
              {agent.isDefault && <Mark kind="good">default</Mark>}
            </header>
            {agent.identity.theme && <p class="muted">{visible(agent.identity.theme)}</p>}
            <dl class="pairs">
              <div>
                <dt>Id</dt>
                <dd>
                  <code>{agent.id}</code>
                </dd>
              </div>
              <div>
                <dt>Model</dt>
                <dd>{visible(agent.model ?? "the first that can be used")}</dd>
              </div>
              {agent.fallbacks.length > 0 && (
                <div>
                  <dt>Fallbacks</dt>
                  <dd>{visible(agent.fallbacks.join(", then "))}</dd>
                </div>
              )}
              <div>
                <dt>Workspace</dt>
                <dd>
                  <code>{visible(agent.workspace)}</code>
                </dd>
              </div>
              <div>
                <dt>Tools</dt>
                <dd>
                  profile {agent.profile ?? "full"}
                  {agent.tools && (
                    <details>
                      <summary>{agent.tools.length} in the main session</summary>
                      {agent.tools.join(", ")}
                    </details>
                  )}
                </dd>
              </div>
              <div>
                <dt>Sandbox</dt>
                <dd>
                  {SANDBOXED[agent.sandbox] ?? agent.sandbox}
                  {agent.sandbox !== "off" && ` (${agent.sandboxLevel}, ${REACH[agent.sandboxNetwork] ?? agent.sandboxNetwork})`}
                </dd>
              </div>
              <div>
                <dt>Heartbeat</dt>
                <dd>{agent.heartbeatSeconds ? `every ${Math.round(agent.heartbeatSeconds / 60)} minutes` : "none"}</dd>
              </div>
              <div>
                <dt>Sub-agents</dt>
                <dd>{visible(subagentsOf(agent))}</dd>
              </div>
              <div>
                <dt>Skills</dt>
                <dd>
                  {agent.usableSkills}
                  {agent.usableSkills < agent.skills && ` of ${agent.skills} can be used`}
                </dd>
              </div>
              <div>
                <dt>Bindings</dt>
                <dd>
                  {agent.bindings.length === 0 && (agent.isDefault ? "everything that no other agent answers" : "none")}
                  {agent.bindings.length > 0 && (
                    <ul>
                      {agent.bindings.map((binding) => (
                        <li key={bound(binding)}>{visible(bound(binding))}</li>
                      ))}
                    </ul>
                  )}
                </dd>
              </div>
              <div>
                <dt>Sessions</dt>
                <dd>
                  {agent.sessions}
                  {agent.lastUsedAt ? `, last used ${fromNow(agent.lastUsedAt)}` : ""}
                </dd>
              </div>
            </dl>
            <div class="buttons">
              <button type="button" class="act" onClick={() => onOpenSession(agent.mainSession)}>
                Open the main session
              </button>
            </div>
          </article>
        ))}
      </div>
    </Page>
  );
}

interface Skill {
  name: string;
  description: string;
  path: string;
  origin: "owner" | "workspace";
  enabled: boolean;
  usable: boolean;
  obstacles: string[];
}

/** A choice of the agent, where there are several. */
export function AgentChoice({ value, phase, onChange }: { value: string | undefined; phase: string; onChange: (id: string) => void }) {
  const agents = useLoad<{ agents: Agent[] }>("/api/agents", phase).data?.agents ?? [];
  if (agents.length < 2) return null;
  return (
    <label class="field">
      Agent
      <select value={value} onChange={(event) => onChange(event.currentTarget.value)}>
        {agents.map((one) => (
          <option key={one.id} value={one.id}>
            {one.name ?? one.id}
          </option>
        ))}
      </select>
    </label>
  );
}

export function SkillsPage({ phase }: PageProps) {
  const [agent, setAgent] = useState("");
  const loaded = useLoad<{ agent: string; skills: Skill[]; problems: { path: string; message: string }[] }>(
    `/api/skills${agent ? `?agent=${encodeURIComponent(agent)}` : ""}`,
    phase,
  );
  const { skills = [], problems = [] } = loaded.data ?? {};
  return (
    <Page name="Skills">
      <AgentChoice value={agent || loaded.data?.agent} phase={phase} onChange={setAgent} />
      <State loaded={loaded} isEmpty={skills.length + problems.length === 0}>
        <h2>No skills yet</h2>
        <p class="muted">
          A skill is a directory with a <code>SKILL.md</code>; <code>myclaw skills --help</code> says where they are looked for.
        </p>
      </State>
      <div class="cards">
        {skills.map((skill) => (
          <article key={skill.path} class="card" aria-label={skill.name}>
            <header>
              <h2>{visible(skill.name)}</h2>
              {skill.usable ? <Mark kind="good">ready</Mark> : <Mark kind={skill.enabled ? "ask" : "plain"}>{skill.enabled ? "cannot be used" : "disabled"}</Mark>}
            </header>
            <p>{visible(skill.description)}</p>
            {skill.obstacles.length > 0 && (
              <ul class="obstacles">
                {skill.obstacles.map((one) => (
                  <li key={one}>{visible(one)}</li>
                ))}
              </ul>
            )}
            <p class="muted small">
              {skill.origin === "owner" ? "yours" : "of the workspace"} · <code>{visible(skill.path)}</code>
            </p>
          </article>
        ))}
      </div>
      {problems.length > 0 && <h2>Cannot be read</h2>}
      <ul class="lines">
        {problems.map((problem) => (
          <li key={problem.path}>
            <span class="grow">
              <code>{visible(problem.path)}</code>: {visible(problem.message)}
            </span>
          </li>
        ))}
      </ul>
    </Page>
  );
}
