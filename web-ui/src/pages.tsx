// The pages, and the frame's links to them.

import type { ComponentType } from "preact";
import type { PageProps } from "./common";
import { Icon } from "./icons";
import { later } from "./later";

interface PageOf {
  name: string;
  icon: string;
  page?: ComponentType<PageProps>;
}

/** By the word in the address. The chat and the gateway's state are made by the frame. */
export const PAGES: Record<string, PageOf> = {
  s: { name: "Chat", icon: "chat" },
  running: { name: "Running", icon: "play", page: later(() => import("./more-pages").then((file) => file.RunningPage)) },
  usage: { name: "Usage", icon: "usage", page: later(() => import("./usage").then((file) => file.UsagePage)) },
  memory: { name: "Memory", icon: "memory", page: later(() => import("./more-pages").then((file) => file.MemoryPage)) },
  files: { name: "Files", icon: "folder", page: later(() => import("./more-pages").then((file) => file.WorkspacePage)) },
  schedules: { name: "Schedules", icon: "clock", page: later(() => import("./more-pages").then((file) => file.SchedulesPage)) },
  channels: { name: "Channels", icon: "channels", page: later(() => import("./more-pages").then((file) => file.ChannelsPage)) },
  devices: { name: "Devices", icon: "devices", page: later(() => import("./more-pages").then((file) => file.DevicesPage)) },
  agents: { name: "Agents", icon: "agents", page: later(() => import("./more-pages").then((file) => file.AgentsPage)) },
  skills: { name: "Skills", icon: "skills", page: later(() => import("./more-pages").then((file) => file.SkillsPage)) },
  config: { name: "Config", icon: "config", page: later(() => import("./config").then((file) => file.ConfigPage)) },
  logs: { name: "Logs", icon: "logs", page: later(() => import("./more-pages").then((file) => file.LogsPage)) },
  status: { name: "Gateway", icon: "gauge" },
};

/** What the address names: a page of this program, never another server. */
export interface Place {
  page: string;
  session: string;
}

export function place(): Place {
  const [, page = "s", name] = location.hash.match(/^#\/([a-z]+)(?:\/([^/?]+))?$/) ?? [];
  let session = "main";
  try {
    if (page === "s" && name) session = decodeURIComponent(name);
  } catch {
    // Not an address of this page: the main session.
  }
  return { page: Object.hasOwn(PAGES, page) ? page : "s", session };
}

export function Rail({ current, session }: { current: string; session: string }) {
  return (
    <nav class="rail" aria-label="Pages">
      {Object.entries(PAGES).map(([word, { name, icon }]) => (
        <a key={word} href={word === "s" ? `#/s/${encodeURIComponent(session)}` : `#/${word}`} aria-current={word === current ? "page" : undefined}>
          <Icon name={icon} />
          <span>{name}</span>
        </a>
      ))}
    </nav>
  );
}
