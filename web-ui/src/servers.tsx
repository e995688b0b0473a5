// The MCP servers: how they are, their tools, and what there is to approve.

import { useState } from "preact/hooks";
import { api } from "./api";
import { Act, Mark, State, useLoad } from "./common";
import { visible } from "./text";

const EVERY = 10_000;

interface Server {
  name: string;
  shown: string;
  state: "approved" | "unapproved" | "disabled" | "unusable";
  reason: string | null;
  tools: { name: string; description: string; isOffered: boolean }[];
}

interface Changes {
  server: string;
  lines: string[];
  code: string;
}

const KINDS = { approved: "good", unapproved: "ask", disabled: "plain", unusable: "bad" } as const;

/** Turns a server on or off, in the config. */
async function setEnabled(name: string, value: boolean): Promise<void> {
  const { version } = await api<{ version: string }>("/api/config");
  const change = { op: "set", path: ["mcp", "servers", name, "enabled"], value };
  await api("/api/config", { method: "PATCH", body: { version, changes: [change] } });
}

function ServerCard({ server, onChange }: { server: Server; onChange: () => Promise<void> }) {
  const [changes, setChanges] = useState<Changes | null>(null);
  const [said, setSaid] = useState("");
  const path = `/api/mcp/${encodeURIComponent(server.name)}`;
  const look = async () => {
    const answer = await api<{ changes: Changes | null }>(`${path}/changes`, { method: "POST" });
    setChanges(answer.changes);
    setSaid(answer.changes ? "" : "Nothing has changed since the approval.");
  };
  const approve = async (code: string) => {
    await api(`${path}/approve`, { method: "POST", body: { code } });
    setChanges(null);
    setSaid("Approved.");
    await onChange();
  };
  const isOn = server.state !== "disabled";
  return (
    <article class="card" aria-label={`MCP server ${server.name}`}>
      <header>
        <h3>{visible(server.name)}</h3>
        <Mark kind={KINDS[server.state] ?? "plain"}>{server.state === "unapproved" ? "not approved" : server.state}</Mark>
      </header>
      <p class="muted">{visible(server.shown)}</p>
      {server.reason && <p class="failure">{visible(server.reason)}</p>}
      {server.tools.length > 0 && (
        <details>
          <summary>{server.tools.length} {server.tools.length === 1 ? "tool" : "tools"}</summary>
          <ul>
            {server.tools.map((tool) => (
              <li key={tool.name}>
                <code>{visible(tool.name)}</code> {tool.isOffered ? "" : "(not offered) "}
                <span class="muted">{visible(tool.description)}</span>
              </li>
            ))}
          </ul>
        </details>
      )}
      {changes && (
        <>
          <p>{visible(changes.server)}</p>
          <pre tabIndex={0}>{changes.lines.map(visible).join("\n")}</pre>
          <Act label="Approve exactly this" icon="check" onAct={() => approve(changes.code)} />
        </>
      )}
      {said && <p role="status">{said}</p>}
      <div class="buttons">
        {isOn && <Act label="Look for changes" onAct={look} />}
        <Act label={isOn ? "Disable" : "Enable"} onAct={() => setEnabled(server.name, !isOn).then(onChange)} />
      </div>
    </article>
  );
}

export function Servers({ phase }: { phase: string }) {
  const loaded = useLoad<{ servers: Server[] }>("/api/mcp", phase, EVERY);
  const servers = loaded.data?.servers ?? [];
  return (
    <section aria-label="MCP servers">
      <h2>MCP servers</h2>
      <State loaded={loaded} isEmpty={servers.length === 0}>
        <p class="muted">There are none. `myclaw mcp add` adds one.</p>
      </State>
      <div class="cards">
        {servers.map((server) => (
          <ServerCard key={server.name} server={server} onChange={loaded.reload} />
        ))}
      </div>
    </section>
  );
}
