// The channels: how they are, what adds and repairs one, who may write, what was not delivered, what was dropped.

import { api } from "./api";
import { type Account, AddChannel, ChannelActs, type Kinds } from "./channel-form";
import { Act, Mark, Page, type PageProps, State, useLoad } from "./common";
import { fullMoment, visible } from "./text";

const EVERY = 5_000;

interface Channel {
  channel: string;
  account: string;
  state: "starting" | "working" | "waiting" | "stopped";
  reason: string | null;
}

interface Undelivered {
  part: string;
  route: { channel: string; account: string; chat: string };
  state: { state: string; reason?: string };
  text: string;
  createdAt: number;
}

interface Dropped {
  at: number;
  channel: string;
  chat: string;
  title: string | null;
  sender: string;
  name: string | null;
  reason: string;
}

interface Pairing {
  sender: string;
  account: string;
  name: string | null;
  state: "pending" | "approved" | "denied";
  since: number;
  code: string | null;
}

const KINDS = { working: "good", starting: "plain", waiting: "ask", stopped: "bad" } as const;

function ChannelCards({ channels, kinds, onDone }: { channels: Channel[]; kinds: Kinds | null; onDone: () => Promise<unknown> }) {
  const own = (one: Channel) => kinds?.accounts.find((account: Account) => account.channel === one.channel && account.account === one.account);
  return (
    <div class="cards">
      {channels.map((one) => (
        <article key={`${one.channel}/${one.account}`} class="card" aria-label={`${one.channel} ${one.account}`}>
          <header>
            <h2>{one.channel}</h2>
            <Mark kind={KINDS[one.state] ?? "plain"}>{one.state}</Mark>
          </header>
          <p class="muted">Account {visible(one.account)}</p>
          {one.reason && <p class="failure">{visible(one.reason)}</p>}
          {kinds && own(one) && <ChannelActs account={own(one) as Account} kinds={kinds} onDone={onDone} />}
        </article>
      ))}
    </div>
  );
}

function Pairings({ pairings, onChange }: { pairings: Pairing[]; onChange: () => Promise<void> }) {
  const change = (what: "approve" | "deny", name: string) => api(`/api/pairing/${what}`, { method: "POST", body: { name } }).then(onChange);
  if (pairings.length === 0) return <p class="muted">Nobody has asked to write.</p>;
  return (
    <ul class="lines">
      {pairings.map((one) => (
        <li key={one.sender}>
          <Mark kind={one.state === "approved" ? "good" : one.state === "denied" ? "bad" : "ask"}>{one.state === "pending" ? "asks" : one.state}</Mark>
          <span class="grow">
            {one.name ? `${visible(one.name)} · ` : ""}
            <code>{visible(one.sender)}</code>
            {one.code && (
              <>
                {" "}
                · code <code>{one.code}</code>
              </>
            )}
          </span>
          <span class="when">{fullMoment(one.since)}</span>
          {one.code && <Act label="Approve" icon="check" onAct={() => change("approve", one.code ?? "")} />}
          {one.state !== "denied" && <Act label={one.state === "approved" ? "Take back" : "Deny"} icon="cross" isDangerous onAct={() => change("deny", one.code ?? one.sender)} />}
        </li>
      ))}
    </ul>
  );
}

export function ChannelsPage({ phase }: PageProps) {
  const loaded = useLoad<{ channels: Channel[]; undelivered: Undelivered[]; dropped: Dropped[] }>("/api/channels", phase, EVERY);
  const pairing = useLoad<{ pairings: Pairing[] }>("/api/pairing", phase, EVERY);
  const kinds = useLoad<Kinds>("/api/channels/kinds", phase);
  const changed = () => Promise.all([kinds.reload(), loaded.reload()]);
  const { channels = [], undelivered = [], dropped = [] } = loaded.data ?? {};
  return (
    <Page name="Channels">
      <State loaded={loaded} isEmpty={channels.length === 0}>
        <h2>No channel is configured</h2>
        <p class="muted">
          This page works without one. Add one below, or with <code>myclaw channels add telegram</code>.
        </p>
      </State>
      <ChannelCards channels={channels} kinds={kinds.data} onDone={changed} />
      {kinds.data && <AddChannel kinds={kinds.data} onDone={changed} />}
      <h2>Who may write</h2>
      {pairing.error ? <p class="failure">{pairing.error}</p> : <Pairings pairings={pairing.data?.pairings ?? []} onChange={pairing.reload} />}
      <h2>Not delivered</h2>
      {undelivered.length === 0 && <p class="muted">Everything was delivered.</p>}
      <ul class="lines">
        {undelivered.map((part) => (
          <li key={part.part}>
            <Mark kind={part.state.state === "uncertain" ? "ask" : "bad"}>{part.state.state}</Mark>
            <span class="grow">
              <b>
                {part.route.channel} · {visible(part.route.chat)}
              </b>{" "}
              {visible(part.text.slice(0, 200))}
              {part.state.reason && <span class="error"> {visible(part.state.reason)}</span>}
            </span>
            <span class="when">{fullMoment(part.createdAt)}</span>
          </li>
        ))}
      </ul>
      <h2>Dropped since the start</h2>
      {dropped.length === 0 && <p class="muted">No message was dropped.</p>}
      <ul class="lines">
        {[...dropped].reverse().map((one, number) => (
          <li key={number}>
            <span class="grow">
              <b>
                {one.channel} · {visible(one.name ?? one.sender)}
              </b>
              {one.title ? ` in ${visible(one.title)}` : ""}: {visible(one.reason)}
            </span>
            <span class="when">{fullMoment(one.at)}</span>
          </li>
        ))}
      </ul>
    </Page>
  );
}
