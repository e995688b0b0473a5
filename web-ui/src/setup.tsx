// The first start: a model that answers, then the workspace and a channel. What works already is not asked for.

import { useEffect, useRef, useState } from "preact/hooks";
import { api } from "./api";
import { Failure, useWork } from "./form";
import type { Provider, SetupState } from "./setup-state";
import { visible } from "./text";

interface Answer {
  version: string;
  inForce: boolean | null;
  state: { problem: string | null } | null;
}

const OTHER = "other";
const STEPS = ["Model", "Workspace", "Channel"] as const;
export function Setup({ state, onEnd }: { state: SetupState; onEnd: () => void }) {
  const [step, setStep] = useState(0);
  const [version, setVersion] = useState(state.version);
  const [done, setDone] = useState("");
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => heading.current?.focus(), [step]);
  const next = (now: string, said: string) => {
    setVersion(now);
    setDone(said);
    if (step + 1 < STEPS.length) setStep(step + 1);
    else onEnd();
  };
  return (
    <div class="page" tabIndex={0} role="region" aria-label="Set up">
      <div class="column setup">
        <h2 ref={heading} tabIndex={-1}>
          Set up MyClaw: {STEPS[step]?.toLowerCase()}
        </h2>
        <ol class="steps" aria-label="Steps">
          {STEPS.map((name, number) => (
            <li key={name} aria-current={number === step ? "step" : undefined}>
              {name}
            </li>
          ))}
        </ol>
        {state.problem && step === 0 && <p class="failure">{visible(state.problem)}</p>}
        <p role="status">{done}</p>
        {step === 0 && <ModelStep providers={state.providers} version={version} onDone={next} onSkip={onEnd} />}
        {step === 1 && <WorkspaceStep workspace={state.workspace} version={version} onDone={next} />}
        {step === 2 && <ChannelStep version={version} onDone={next} />}
      </div>
    </div>
  );
}

interface StepProps {
  version: string;
  onDone: (version: string, said: string) => void;
}

function ModelStep({ providers, version, onDone, onSkip }: StepProps & { providers: Provider[]; onSkip: () => void }) {
  const [name, setName] = useState(providers.find((one) => one.hasKey)?.name ?? providers[0]?.name ?? OTHER);
  const [other, setOther] = useState("");
  const [model, setModel] = useState("");
  const [address, setAddress] = useState("");
  const [key, setKey] = useState("");
  const [isBusy, error, submit] = useWork();
  const known = providers.find((one) => one.name === name);
  const provider = known?.name ?? other.trim();
  const work = submit(async () => {
    const given = (text: string) => text.trim() || undefined;
    const answer = await api<Answer & { model: string; tookMs: number }>("/api/setup/model", {
      method: "POST",
      body: { version, provider, model: given(model), baseUrl: given(address), key: given(key) },
    });
    setKey("");
    onDone(answer.version, `${answer.model} answered in ${answer.tookMs} ms.`);
  });
  return (
    <form class="form" onSubmit={work}>
      <label>
        Provider
        <select value={name} onChange={(event) => setName(event.currentTarget.value)}>
          {providers.map((one) => (
            <option key={one.name} value={one.name}>
              {one.name}
              {one.hasKey ? " (has a key)" : ""}
            </option>
          ))}
          <option value={OTHER}>another server</option>
        </select>
      </label>
      {!known && (
        <label>
          Its name
          <input required value={other} spellcheck={false} onInput={(event) => setOther(event.currentTarget.value)} />
        </label>
      )}
      <label>
        Model
        <input required={!known?.model} placeholder={known?.model ?? ""} value={model} spellcheck={false} onInput={(event) => setModel(event.currentTarget.value)} />
      </label>
      <label>
        Address{known && !known.needsAddress ? "; empty is the usual one" : ""}
        <input type="url" required={!known || known.needsAddress} placeholder="https://host/v1" value={address} spellcheck={false} onInput={(event) => setAddress(event.currentTarget.value)} />
      </label>
      <label>
        Key{known?.hasKey ? "; empty takes the one that is there" : known && !known.needsKey ? "; empty for none" : ""}
        <input type="password" autocomplete="off" required={!!known?.needsKey && !known.hasKey && !address} value={key} onInput={(event) => setKey(event.currentTarget.value)} />
      </label>
      <p class="muted small">The model is asked one short question. If it answers, the key is kept on the gateway's machine and the model is named in the config. The key never comes back to this page.</p>
      <Failure error={error} />
      <div class="buttons">
        <button type="button" onClick={onSkip}>
          Later
        </button>
        <button type="submit" class="primary" disabled={isBusy}>
          {isBusy ? "Asking the model…" : "Try and keep"}
        </button>
      </div>
    </form>
  );
}

/** Changes the config by one value. */
async function change(version: string, path: string[], value: unknown): Promise<Answer> {
  const answer = await api<Answer>("/api/config", { method: "PATCH", body: { version, changes: [{ op: "set", path, value }] } });
  if (answer.inForce === false) throw new Error(`saved, but not in force: ${answer.state?.problem ?? ""}`);
  return answer;
}

function WorkspaceStep({ workspace, version, onDone }: StepProps & { workspace: string }) {
  const [path, setPath] = useState(workspace);
  const [isBusy, error, submit] = useWork();
  const work = submit(async () => {
    const wanted = path.trim();
    if (!wanted || wanted === workspace) return onDone(version, "The workspace stays as it is.");
    const answer = await change(version, ["agents", "defaults", "workspace"], wanted);
    onDone(answer.version, "The workspace is set.");
  });
  return (
    <form class="form" onSubmit={work}>
      <label>
        Directory in which the agent works
        <input required value={path} spellcheck={false} onInput={(event) => setPath(event.currentTarget.value)} />
      </label>
      <p class="muted small">On the gateway's machine. It is made when the agent first works there.</p>
      <Failure error={error} />
      <div class="buttons">
        <button type="submit" class="primary" disabled={isBusy}>
          Go on
        </button>
      </div>
    </form>
  );
}

function ChannelStep({ version, onDone }: StepProps) {
  const [token, setToken] = useState("");
  const [isBusy, error, submit] = useWork();
  const work = submit(async () => {
    if (!token.trim()) return onDone(version, "");
    const answer = await change(version, ["channels", "telegram", "botToken"], token.trim());
    setToken("");
    onDone(answer.version, "The bot is in the config.");
    location.hash = "#/channels";
  });
  return (
    <form class="form" onSubmit={work}>
      <p>Reach the agent from Telegram: talk with @BotFather to make a bot, and paste its token. The page “Channels” then shows whether it is connected. The page “Channels” adds the others.</p>
      <label>
        Token of the bot
        <input type="password" autocomplete="off" value={token} onInput={(event) => setToken(event.currentTarget.value)} />
      </label>
      <p class="muted small">
        To start the gateway with your session, run <code>myclaw gateway install</code> on its machine.
      </p>
      <Failure error={error} />
      <div class="buttons">
        <button type="submit" class="primary" disabled={isBusy}>
          {token.trim() ? "Save and finish" : "Finish without"}
        </button>
      </div>
    </form>
  );
}
