// Notifications in this browser while the page is closed.

import { useEffect, useState } from "preact/hooks";
import { api } from "./api";
import { Act, type PageProps, useLoad } from "./common";
import { endNotifications, subscription, WORKER, workerAddress } from "./push";
import { fullMoment, visible } from "./text";

interface Browser {
  id: string;
  name: string;
  asks: boolean;
  ends: boolean;
  createdAt: number;
  problem: string | null;
}

interface Push {
  key: string;
  browsers: Browser[];
}

/** Which of the gateway's browsers this one is. */
const OWN = "myclaw.push";

/** Why this browser has none; empty if it can. */
function obstacle(): string {
  if (!isSecureContext) return "Browsers show notifications of encrypted pages and of this machine only: reach the gateway by HTTPS.";
  if (!("serviceWorker" in navigator) || !("PushManager" in window) || !("Notification" in window)) {
    return "This browser has no notifications here. On an iPhone, add the page to the home screen first.";
  }
  return "";
}

function bytes(text: string): Uint8Array<ArrayBuffer> {
  const plain = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(plain, (one) => one.charCodeAt(0));
}

function named(): string {
  const browser = /Firefox|Edg|Chrome|Safari/.exec(navigator.userAgent)?.[0]?.replace("Edg", "Edge") ?? "browser";
  const system = /Android|iPhone|iPad|Windows|Mac OS X|Linux/.exec(navigator.userAgent)?.[0] ?? "";
  return system ? `${browser} on ${system}` : browser;
}

async function switchOn(key: string, asks: boolean, ends: boolean): Promise<void> {
  if ((await Notification.requestPermission()) !== "granted") {
    throw new Error("This browser does not allow notifications of this page; allow them in its settings for this address, then try again.");
  }
  await navigator.serviceWorker.register(workerAddress(WORKER));
  const { pushManager } = await navigator.serviceWorker.ready;
  const before = await pushManager.getSubscription();
  // One that was made for another key is of no use.
  const own = before?.options.applicationServerKey;
  if (before && own && btoa(String.fromCharCode(...new Uint8Array(own))) !== btoa(String.fromCharCode(...bytes(key)))) await before.unsubscribe();
  const made = await pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: bytes(key) });
  const { endpoint, keys } = made.toJSON();
  const { id } = await api<{ id: string }>("/api/push", { method: "POST", body: { endpoint, p256dh: keys?.p256dh, auth: keys?.auth, asks, ends, name: named() } });
  localStorage.setItem(OWN, id);
}

export function Notifications({ phase }: { phase: PageProps["phase"] }) {
  const loaded = useLoad<Push>("/api/push", phase);
  const [isHere, setHere] = useState(false);
  const [asks, setAsks] = useState(true);
  const [ends, setEnds] = useState(true);
  const [said, setSaid] = useState("");
  const why = obstacle();
  const own = loaded.data?.browsers.find((one) => one.id === localStorage.getItem(OWN));
  useEffect(() => {
    if (!why) subscription().then((one) => setHere(one !== null), () => {});
  }, [loaded.data]);
  useEffect(() => {
    if (!own) return;
    setAsks(own.asks);
    setEnds(own.ends);
  }, [own?.asks, own?.ends]);
  if (!loaded.data) return loaded.error ? <p class="failure">{loaded.error}</p> : null;
  const { key, browsers } = loaded.data;
  const isOn = own !== undefined && isHere;
  const on = async () => {
    setSaid("");
    await switchOn(key, asks, ends);
    setSaid("Notifications are on in this browser.");
    await loaded.reload();
  };
  const off = async () => {
    setSaid("");
    await endNotifications();
    if (own) await api("/api/push/remove", { method: "POST", body: { id: own.id } });
    localStorage.removeItem(OWN);
    setHere(false);
    setSaid("Notifications are off in this browser.");
    await loaded.reload();
  };
  const test = async () => {
    setSaid("");
    try {
      await api("/api/push/test", { method: "POST", body: { id: own?.id } });
      setSaid("A notification was sent to this browser.");
    } finally {
      await loaded.reload();
    }
  };
  const remove = (one: Browser) => api("/api/push/remove", { method: "POST", body: { id: one.id } }).then(loaded.reload);
  return (
    <section aria-label="Notifications">
      <h2>Notifications</h2>
      <p class="muted">This browser says when a call needs an approval and when a turn has ended, also while the page is closed. The text is encrypted for it; its vendor passes it on.</p>
      {why ? (
        <p>{why}</p>
      ) : (
        <>
          <fieldset class="choice">
            <legend>Notify me</legend>
            <div>
              <label>
                <input type="checkbox" checked={asks} onChange={(event) => setAsks(event.currentTarget.checked)} />
                <span>when it asks</span>
              </label>
              <label>
                <input type="checkbox" checked={ends} onChange={(event) => setEnds(event.currentTarget.checked)} />
                <span>when a turn ends</span>
              </label>
            </div>
          </fieldset>
          <div class="acts">
            <Act label={isOn ? "Save" : "Switch on in this browser"} icon="check" onAct={on} />
            {isOn && <Act label="Send a test" onAct={test} />}
            {(isOn || isHere) && <Act label="Switch off in this browser" icon="cross" isDangerous onAct={off} />}
          </div>
          <p role="status">{said}</p>
        </>
      )}
      <ul class="lines">
        {browsers.map((one) => (
          <li key={one.id}>
            <span class="grow">
              {visible(one.name)}
              {one === own ? " (this one)" : ""} · {[one.asks && "when it asks", one.ends && "when a turn ends"].filter(Boolean).join(" and ")}
              {one.problem && <span class="error"> {visible(one.problem)}</span>}
            </span>
            <span class="when">{fullMoment(one.createdAt)}</span>
            {one !== own && <Act label="Remove" icon="cross" isDangerous onAct={() => remove(one)} />}
          </li>
        ))}
      </ul>
    </section>
  );
}
