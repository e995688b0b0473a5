// The model, the thinking level and the permission mode of a chat.

import { useState } from "preact/hooks";
import { Dialog } from "./dialog";
import type { Mode } from "./protocol";
import type { SessionView } from "./session";
import { visible } from "./text";

/** The permission modes, and what they mean. */
const MODES: Record<Mode, string> = {
  "read-only": "nothing is changed, run or sent",
  plan: "nothing is changed, run or sent until you approve a plan",
  ask: "you are asked before each change, command and message",
  auto: "the rules of the config decide",
  sandbox: "files and commands are confined in the sandbox",
};
/** The values of choices that are no models. */
const OTHER = " other";
const OF_CONFIG = "";

export function ChoicesBar({ view }: { view: SessionView }) {
  const [asks, setAsks] = useState(false);
  const [name, setName] = useState("");
  const { choices } = view;
  const say = (error: Error) => view.say(error.message);
  return (
    <div class="choices" role="group" aria-label="This chat">
      {choices && (
        <>
          <select
            aria-label="Model"
            title={`Model: ${visible(choices.model)}`}
            value={choices.model}
            onChange={(event) => {
              const chosen = event.currentTarget.value;
              // What is shown is what the gateway says.
              event.currentTarget.value = choices.model;
              if (chosen === OTHER) setAsks(true);
              else view.choose({ model: chosen }).catch(say);
            }}
          >
            {choices.models.map((model) => (
              <option key={model} value={model}>
                {visible(model)}
              </option>
            ))}
            <option value={OF_CONFIG}>that of the config</option>
            <option value={OTHER}>another one…</option>
          </select>
          <select
            aria-label="Thinking"
            title={`Thinking: ${choices.thinking.level}`}
            value={choices.thinking.level}
            disabled={choices.thinking.offered.length < 2}
            onChange={(event) => {
              const thinking = event.currentTarget.value;
              event.currentTarget.value = choices.thinking.level;
              view.choose({ thinking }).catch(say);
            }}
          >
            {choices.thinking.offered.map((level) => (
              <option key={level} value={level}>
                thinking {level}
              </option>
            ))}
          </select>
        </>
      )}
      <select
        aria-label="Permission mode"
        title={MODES[view.mode]}
        value={view.mode}
        onChange={(event) => {
          const mode = event.currentTarget.value as Mode;
          event.currentTarget.value = view.mode;
          view.setMode(mode).catch(say);
        }}
      >
        {Object.entries(MODES).map(([mode, meaning]) => (
          <option key={mode} value={mode} title={meaning}>
            {mode}
          </option>
        ))}
      </select>
      {asks && (
        <Dialog title="Another model" action="Use" onClose={() => setAsks(false)} onConfirm={() => view.choose({ model: name.trim() })}>
          <label>
            Name, as `myclaw models list` shows it
            <input value={name} placeholder="provider/model" required onInput={(event) => setName(event.currentTarget.value)} />
          </label>
        </Dialog>
      )}
    </div>
  );
}
