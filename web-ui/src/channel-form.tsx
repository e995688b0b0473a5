// Channels of the config: one is added, repaired, tried and removed. What each kind needs is what the gateway declares.

import { Fragment } from "preact";
import { useRef, useState } from "preact/hooks";
import { api } from "./api";
import { Act } from "./common";
import { Failure, useWork } from "./form";
import { Code } from "./qr";
import { visible } from "./text";

interface Field {
  key: string;
  what: string | null;
  isRequired: boolean;
  /** Whether a phone that scans a QR code gives it. */
  isLinked: boolean;
}

interface Secret {
  key: string;
  whence: string;
  variable: string;
  isSet: boolean;
}

export interface Kind {
  name: string;
  about: string;
  accounts: "one" | "further" | "furtherOfOneApp" | "named";
  /** What says there who somebody is; null if no people write. */
  people: string | null;
  fields: Field[];
  secrets: Secret[];
}

export interface Account {
  channel: string;
  account: string;
  values: Record<string, string>;
}

export interface Kinds {
  version: string;
  kinds: Kind[];
  accounts: Account[];
}

interface Probed {
  found: string;
  address: string | null;
  code: string[] | null;
}

interface Changed {
  inForce: boolean | null;
  state: { problem: string | null } | null;
  probed?: Probed;
}

/** The account that the config does not name. */
const FIRST = "default";

function post<T>(change: string, version: string, account: { channel: string; account: string }, more: object = {}): Promise<T> {
  const name = account.account === FIRST ? "" : account.account;
  return api<T>(`/api/channels/${change}`, { method: "POST", body: { version, channel: account.channel, account: name, ...more } });
}

async function changed(asked: Promise<Changed>): Promise<Changed> {
  const answer = await asked;
  if (answer.inForce === false) throw new Error(`saved, but not in force: ${answer.state?.problem ?? ""}`);
  return answer;
}

/** Who the vendor says that it is, and how a phone begins a chat with it. */
function Found({ probed }: { probed: Probed }) {
  return (
    <div role="status">
      <p>It works: {visible(probed.found)}.</p>
      {probed.address && probed.code && (
        <>
          <p class="muted small">
            The code begins a chat on a phone: <code>{visible(probed.address)}</code>
          </p>
          <Code rows={probed.code} label={`QR code of ${probed.address}`} />
        </>
      )}
    </div>
  );
}

interface Link {
  address: string;
  code: string[];
}

/** Has a phone scan a QR code, and takes the account from it. */
function LinkPhone({ kinds, kind, field }: { kinds: Kinds; kind: Kind; field: Field }) {
  const [link, setLink] = useState<Link | null>(null);
  const [account, setAccount] = useState("");
  const place = useRef<HTMLDivElement>(null);
  const input = (key: string) => place.current?.closest("form")?.elements.namedItem(key) as HTMLInputElement | null;
  const ask = async () => {
    setAccount("");
    const values = { baseUrl: input("baseUrl")?.value ?? "" };
    const where = { channel: kind.name, account: FIRST };
    try {
      const begun = await post<Link>("link", kinds.version, where, { values });
      setLink(begun);
      const linked = await post<{ account: string }>("linked", kinds.version, where, { values, address: begun.address });
      const own = input(field.key);
      if (own) own.value = linked.account;
      setAccount(linked.account);
    } finally {
      setLink(null);
    }
  };
  return (
    <div ref={place}>
      <Act label="Link a phone with a QR code" icon="devices" onAct={ask} />
      {link && (
        <div role="status">
          <p class="muted small">Scan it with the app on the phone: Settings, Linked devices, Link new device. It is valid for a short time.</p>
          <Code rows={link.code} label={`QR code of ${link.address}`} />
        </div>
      )}
      {account && <p role="status">Linked to {visible(account)}.</p>}
    </div>
  );
}

/** Sends what a form about a channel holds. */
function TryAndKeep({ error, isBusy }: { error: string; isBusy: boolean }) {
  return (
    <>
      <Failure error={error} />
      <div class="buttons">
        <button type="submit" class="primary" disabled={isBusy}>
          {isBusy ? "Trying…" : "Try and keep"}
        </button>
      </div>
    </>
  );
}

interface FormProps {
  kinds: Kinds;
  onDone: () => Promise<unknown>;
}

/** The values and the secrets of an account. One that is repaired keeps what is left empty. */
function Inputs({ kinds, kind, secrets, isRepair }: { kinds: Kinds; kind: Kind; secrets: Secret[]; isRepair: Account | null }) {
  return (
    <>
      {kind.fields.map((field) => (
        <Fragment key={field.key}>
          <label>
            <span>
              {field.key} <span class="hint">{field.what ? visible(field.what) : "empty is the usual one"}</span>
            </span>
            <input name={field.key} required={field.isRequired && !isRepair} defaultValue={isRepair?.values[field.key] ?? ""} spellcheck={false} autocomplete="off" />
          </label>
          {field.isLinked && <LinkPhone kinds={kinds} kind={kind} field={field} />}
        </Fragment>
      ))}
      {secrets.map((secret) => (
        <label key={secret.key}>
          <span>
            {secret.key}{" "}
            <span class="hint">
              {visible(secret.whence)}
              {isRepair ? " Empty keeps the one that is there." : secret.isSet ? ` Empty takes the variable ${secret.variable}, which is set.` : ""}
            </span>
          </span>
          <input type="password" name={`secret ${secret.key}`} required={!isRepair && !secret.isSet} autocomplete="off" />
        </label>
      ))}
    </>
  );
}

/** What is written in a form. */
function read(form: HTMLFormElement, kind: Kind, secrets: Secret[]) {
  const data = new FormData(form);
  const text = (name: string) => String(data.get(name) ?? "").trim();
  const pick = (keys: string[], prefix: string) => Object.fromEntries(keys.map((key) => [key, text(prefix + key)]).filter(([, value]) => value));
  return {
    values: pick(
      kind.fields.map((field) => field.key),
      "",
    ),
    secrets: pick(
      secrets.map((secret) => secret.key),
      "secret ",
    ),
    allowFrom: text("allowFrom").split(/[\s,]+/).filter(Boolean),
  };
}

export function AddChannel({ kinds, onDone }: FormProps) {
  const [name, setName] = useState("");
  const [account, setAccount] = useState("");
  const [made, setMade] = useState<Probed | null>(null);
  const [isBusy, error, submit] = useWork();
  const kind = kinds.kinds.find((one) => one.name === name);
  const isFurther = kind?.accounts !== "named" && account.trim() !== "";
  // A variable that is set is that of the first account.
  const own = kind && !(isFurther && kind.accounts === "furtherOfOneApp") ? kind.secrets : [];
  const secrets = account.trim() ? own.map((secret) => ({ ...secret, isSet: false })) : own;
  const work = submit(async (form) => {
    if (!kind) return;
    const answer = await changed(post("add", kinds.version, { channel: kind.name, account: account.trim() }, read(form, kind, secrets)));
    setMade(answer.probed ?? null);
    setName("");
    setAccount("");
    await onDone();
  });
  return (
    <section aria-label="Add a channel">
      <h2>Add a channel</h2>
      <form class="form" onSubmit={work} key={name}>
        <label>
          Channel
          <select
            value={name}
            onChange={(event) => {
              setName(event.currentTarget.value);
              setMade(null);
            }}
          >
            <option value="">choose one</option>
            {kinds.kinds.map((one) => (
              <option key={one.name} value={one.name}>
                {one.name}: {one.about}
              </option>
            ))}
          </select>
        </label>
        {kind && (
          <>
            {kind.accounts !== "one" && (
              <label>
                {kind.accounts === "named" ? "Its name, such as mine" : "Name of a further account; empty for the first one"}
                <input required={kind.accounts === "named"} value={account} spellcheck={false} onInput={(event) => setAccount(event.currentTarget.value)} />
              </label>
            )}
            <Inputs kinds={kinds} kind={kind} secrets={secrets} isRepair={null} />
            {kind.people && !isFurther && (
              <label>
                <span>
                  Who may write at once <span class="hint">{visible(kind.people)}; several with blanks between them. Others ask first.</span>
                </span>
                <input name="allowFrom" spellcheck={false} autocomplete="off" />
              </label>
            )}
            <p class="muted small">
              The gateway tries it, then writes it to the config. Secrets go into the file <code>.env</code> of its state directory, and never come back to this page.
            </p>
            <TryAndKeep error={error} isBusy={isBusy} />
          </>
        )}
      </form>
      {made && <Found probed={made} />}
    </section>
  );
}

/** What can be done with a channel of the config. */
export function ChannelActs({ account, kinds, onDone }: FormProps & { account: Account }) {
  const [probed, setProbed] = useState<Probed | null>(null);
  const [isOpen, setOpen] = useState(false);
  const [isSure, setSure] = useState(false);
  const [isBusy, error, submit] = useWork();
  const kind = kinds.kinds.find((one) => one.name === account.channel);
  if (!kind) return null;
  const secrets = kind.accounts === "furtherOfOneApp" && account.account !== FIRST ? [] : kind.secrets;
  const canRepair = kind.fields.length > 0 || secrets.length > 0;
  const test = async () => {
    setProbed(null);
    setProbed(await post<Probed>("test", kinds.version, account));
  };
  const repair = submit(async (form) => {
    const { values, secrets: typed } = read(form, kind, secrets);
    const differing = Object.fromEntries(Object.entries(values).filter(([key, value]) => value !== account.values[key]));
    const answer = await changed(post("repair", kinds.version, account, { values: differing, secrets: typed }));
    setOpen(false);
    setProbed(answer.probed ?? null);
    await onDone();
  });
  const remove = () => changed(post("remove", kinds.version, account)).then(onDone);
  return (
    <>
      <div class="acts">
        <Act label="Test" icon="check" onAct={test} />
        {canRepair && (
          <button type="button" class="act" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
            Repair
          </button>
        )}
        {isSure ? (
          <>
            <Act label="Remove it from the config" icon="cross" isDangerous onAct={remove} />
            <button type="button" class="act" onClick={() => setSure(false)}>
              Keep it
            </button>
          </>
        ) : (
          <button type="button" class="act danger" onClick={() => setSure(true)}>
            Remove
          </button>
        )}
      </div>
      {isOpen && (
        <form class="form" onSubmit={repair} aria-label={`Repair ${account.channel} ${account.account}`}>
          <Inputs kinds={kinds} kind={kind} secrets={secrets} isRepair={account} />
          <TryAndKeep error={error} isBusy={isBusy} />
        </form>
      )}
      {probed && <Found probed={probed} />}
    </>
  );
}
