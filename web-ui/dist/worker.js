// Shows notifications while the page is closed. It keeps no files, and does nothing else.

self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));

self.addEventListener("push", (event) => {
  const { title, body, tag, session } = event.data.json();
  const show = async () => {
    // Who looks at the page sees it there.
    const windows = await self.clients.matchAll({ type: "window" });
    if (tag !== "test" && windows.some((one) => one.focused)) return;
    await self.registration.showNotification(title, { body, tag, icon: "/icon-192.png", data: { session } });
  };
  event.waitUntil(show());
});

self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  const address = `/#/s/${encodeURIComponent(event.notification.data.session)}`;
  const open = async () => {
    const [one] = await self.clients.matchAll({ type: "window" });
    if (!one) return self.clients.openWindow(address);
    one.postMessage({ open: address });
    await one.focus();
  };
  event.waitUntil(open());
});
