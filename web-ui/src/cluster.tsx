// The gateways that share the database: what each holds, what waits, and emptying one.

import { useState } from "preact/hooks";
import { api } from "./api";
import { Mark, State, Table, useLoad } from "./common";
import { Dialog } from "./dialog";
import { duration, visible } from "./text";

const EVERY = 5_000;

interface ClusterNode {
  name: string;
  holder: string;
  version: string;
  address: string;
  config: string;
  silentMs: number;
  isDraining: boolean;
  leases: Record<string, number>;
  accounts: string[];
}

interface Standby {
  name: string;
  sync: string;
  lagBytes: number | null;
  lagMs: number | null;
}

interface ClusterState {
  database: string;
  tenant: string;
  leaseMs: number;
  nodes: ClusterNode[];
  standbys: Standby[] | null;
  configsDiffer: boolean;
  openMessages: number;
  oldestOpenMs: number | null;
}

function Sign({ node, leaseMs }: { node: ClusterNode; leaseMs: number }) {
  if (node.silentMs > leaseMs) return <Mark kind="bad">no sign for {duration(node.silentMs)}</Mark>;
  return node.isDraining ? <Mark kind="ask">stopping</Mark> : <Mark kind="good">{duration(node.silentMs)} ago</Mark>;
}

function lag({ lagBytes, lagMs }: Standby) {
  if (lagBytes === null) return "not visible to the user of the database: GRANT pg_monitor";
  return `${lagBytes} bytes behind${lagMs === null ? "" : `, ${lagMs} ms`}`;
}

export function Cluster({ phase }: { phase: string }) {
  const loaded = useLoad<ClusterState>("/api/cluster", phase, EVERY);
  const [drained, setDrained] = useState<ClusterNode | null>(null);
  const state = loaded.data;
  const drain = (node: string) => api("/api/cluster/drain", { method: "POST", body: { node } }).then(loaded.reload);
  return (
    <section aria-label="Gateways">
      <h2>Gateways</h2>
      <State loaded={loaded} />
      {state && (
        <>
          <p class="muted">
            They share the database {state.database}. {state.openMessages} messages wait for an answer
            {state.oldestOpenMs !== null && `, the oldest for ${duration(state.oldestOpenMs)}`}.
          </p>
          {state.standbys && state.standbys.length > 0 && (
            <Table name="Standbys" head={["Standby", "Commits wait", "Lag"]}>
              {state.standbys.map((standby, index) => (
                <tr key={index}>
                  <th scope="row">{visible(standby.name)}</th>
                  <td>{standby.sync}</td>
                  <td>{lag(standby)}</td>
                </tr>
              ))}
            </Table>
          )}
          {state.configsDiffer && <p class="failure">The configs of these machines differ. Give all of them the same file.</p>}
          <Table name="Gateways" head={["Node", "Version", "Address", "Config", "Last sign", "Sessions", "Accounts", "Leases", ""]}>
            {state.nodes.map((node) => (
              <tr key={node.holder}>
                <th scope="row">{visible(node.name)}</th>
                <td>{visible(node.version)}</td>
                <td>{visible(node.address)}</td>
                <td>{node.config}</td>
                <td>
                  <Sign node={node} leaseMs={state.leaseMs} />
                </td>
                <td>{node.leases.desk ?? 0}</td>
                <td>{visible(node.accounts.join(", "))}</td>
                <td>{Object.values(node.leases).reduce((sum, count) => sum + count, 0)}</td>
                <td>
                  {!node.isDraining && (
                    <button type="button" class="act danger" aria-label={`Drain ${node.name}`} onClick={() => setDrained(node)}>
                      Drain
                    </button>
                  )}
                </td>
              </tr>
            ))}
          </Table>
        </>
      )}
      {drained && (
        <Dialog title={`Drain ${drained.name}?`} action="Drain" isDangerous onClose={() => setDrained(null)} onConfirm={() => drain(drained.holder)}>
          <p>
            It takes no more messages, gives running turns ten seconds, and stops. The other gateways go on with its sessions. It stays down until somebody starts
            it on its machine.
          </p>
        </Dialog>
      )}
    </section>
  );
}
