// This browser's subscription to notifications. The page that sets it up is loaded later; signing out ends it.

/** The script that shows them. */
export const WORKER = "/worker.js";

interface Policy {
  createScriptURL: (text: string) => unknown;
}

/** The address of the worker in the form that browsers with trusted types want. Nothing else gets it. */
export function workerAddress(address: typeof WORKER): string {
  const types = (window as { trustedTypes?: { createPolicy: (name: string, rules: Policy) => Policy } }).trustedTypes;
  if (!types) return address;
  policy ??= types.createPolicy("worker", {
    createScriptURL: (text) => {
      if (text !== WORKER) throw new TypeError("no other worker");
      return text;
    },
  });
  return policy.createScriptURL(address) as string;
}

let policy: Policy | null = null;

/** What this browser has subscribed to, if it has. */
export async function subscription(): Promise<PushSubscription | null> {
  const registration = await navigator.serviceWorker?.getRegistration("/");
  return (await registration?.pushManager?.getSubscription()) ?? null;
}

/** Ends the notifications here. The gateway learns of it when it sends the next one, or from the page. */
export async function endNotifications(): Promise<void> {
  await (await subscription())?.unsubscribe();
}

/** Opens what a notification that was clicked is about. */
export function followNotifications(): void {
  navigator.serviceWorker?.addEventListener("message", (event) => {
    const address = (event.data as { open?: unknown }).open;
    if (typeof address === "string" && address.startsWith("/#/s/")) location.hash = address.slice(1);
  });
}
