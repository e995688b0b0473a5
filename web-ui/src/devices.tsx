// Devices: who else may use the gateway, and for what.

import { useState } from "preact/hooks";
import { api } from "./api";
import { Act, Choice, Mark, Page, type PageProps, State, useLoad } from "./common";
import { Copy } from "./copy";
import { Notifications } from "./notifications";
import { Code } from "./qr";
import { fullMoment, visible } from "./text";

const EVERY = 5_000;

const SCOPES = [
  ["operator", "Talk and approve"],
  ["read-only", "Only see"],
  ["webhook", "Only deliver"],
  ["node", "Be a node"],
  ["owner", "Everything"],
] as const;

type Scope = (typeof SCOPES)[number][0];

interface Device {
  id: string;
  name: string;
  scope: Scope;
  state: "pending" | "approved" | "revoked";
  createdAt: number;
  lastSeenAt: number | null;
}

interface NewCode {
  code: string;
  scope: Scope;
  expiresAt: number;
}

function change(what: "approve" | "deny" | "revoke", device: Device): Promise<unknown> {
  return api(`/api/devices/${what}`, { method: "POST", body: { name: device.id } });
}

function NewDevice() {
  const [scope, setScope] = useState<Scope>("operator");
  const [made, setMade] = useState<NewCode | null>(null);
  return (
    <section aria-label="A new device">
      <h2>A new device</h2>
      <Choice label="It may" value={scope} values={SCOPES} onChange={setScope} />
      <p>
        <Act label="Make a code" icon="plus" onAct={() => api<NewCode>("/api/devices/code", { method: "POST", body: { scope } }).then(setMade)} />
      </p>
      {made && (
        <p role="status">
          <code>{made.code}</code> pairs one device as {made.scope}, until {fullMoment(made.expiresAt)}. Then approve it here.
        </p>
      )}
    </section>
  );
}

interface Link {
  links: string[];
  expiresAt: number;
  /** The rows of a QR code of the last link: `1` is dark. */
  code: string[];
}

function Phone() {
  const [made, setMade] = useState<Link | null>(null);
  const link = made?.links.at(-1) ?? "";
  return (
    <section aria-label="Sign in on a phone">
      <h2>Sign in on a phone</h2>
      <p class="muted">A link signs you in once, within ten minutes. Whoever opens it first may do everything here.</p>
      <p>
        <Act label="Make a link" icon="plus" onAct={() => api<Link>("/api/devices/link", { method: "POST", body: {} }).then(setMade)} />
      </p>
      {made && (
        <div role="status">
          <Code rows={made.code} label="QR code of the link" />
          <p>
            Its address begins with <code>{visible(new URL(link).origin)}</code>. <Copy label="Copy the link" text={link} />
            {made.links.length < 2 && " This machine alone reaches it; name an address that the phone reaches in gateway.allowedHosts."}
          </p>
        </div>
      )}
    </section>
  );
}

export function DevicesPage({ phase }: PageProps) {
  const loaded = useLoad<{ devices: Device[] }>("/api/devices", phase, EVERY);
  const devices = loaded.data?.devices ?? [];
  return (
    <Page name="Devices">
      <State loaded={loaded} isEmpty={devices.length === 0}>
        <h2>No other device has access</h2>
        <p class="muted">Another browser, a script, a phone or a machine pairs with a code, and gets a token of its own.</p>
      </State>
      <ul class="lines">
        {devices.map((one) => (
          <li key={one.id}>
            <Mark kind={one.state === "approved" ? "good" : "ask"}>{one.state === "pending" ? "asks" : one.state}</Mark>
            <span class="grow">
              {visible(one.name)} · {one.scope} · <code>{one.id}</code>
            </span>
            <span class="when">{one.lastSeenAt ? `seen ${fullMoment(one.lastSeenAt)}` : "never seen"}</span>
            {one.state === "pending" && <Act label="Approve" icon="check" onAct={() => change("approve", one).then(loaded.reload)} />}
            <Act
              label={one.state === "pending" ? "Deny" : "Revoke"}
              icon="cross"
              isDangerous
              onAct={() => change(one.state === "pending" ? "deny" : "revoke", one).then(loaded.reload)}
            />
          </li>
        ))}
      </ul>
      {!loaded.error && <NewDevice />}
      {!loaded.error && <Phone />}
      <Notifications phase={phase} />
    </Page>
  );
}
