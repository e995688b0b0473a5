// Icons, drawn with the colour of the text around them.

const PATHS: Record<string, string> = {
  menu: "M4 6h16M4 12h16M4 18h16",
  prompts: "M5 4h14v16H5zM8 8h8M8 12h8M8 16h5",
  folder: "M4 6h6l2 2h8v11H4z",
  pin: "M9 4h6l-1 6 3 3H7l3-3zM12 13v7",
  plus: "M12 5v14M5 12h14",
  send: "M12 19V5M6 11l6-6 6 6",
  stop: "M7 7h10v10H7z",
  check: "M5 13l4 4 10-10",
  cross: "M6 6l12 12M18 6L6 18",
  question: "M9 9a3 3 0 1 1 4.5 2.6c-.9.5-1.5 1.2-1.5 2.4M12 18v.1",
  dot: "M12 12v.1",
  spinner: "M12 4a8 8 0 1 1-8 8",
  picture: "M4 5h16v14H4zM4 16l5-5 4 4 3-3 4 4M15 9v.1",
  more: "M6 12v.1M12 12v.1M18 12v.1",
  search: "M11 5a6 6 0 1 1 0 12 6 6 0 0 1 0-12zM16 16l4 4",
  theme: "M12 4a8 8 0 1 0 0 16zM12 4a8 8 0 0 1 0 16",
  leave: "M14 4h5v16h-5M10 8l-4 4 4 4M6 12h9",
  gauge: "M4 18a8 8 0 1 1 16 0M12 18l4-6",
  chat: "M4 5h16v11H10l-4 4v-4H4z",
  copy: "M9 9h10v11H9zM15 9V4H5v11h4",
  edit: "M4 20h4L19 9l-4-4L4 16zM13 7l4 4",
  left: "M14 6l-6 6 6 6",
  right: "M10 6l6 6-6 6",
  down: "M6 10l6 6 6-6",
  usage: "M5 20v-7M12 20V5M19 20v-11",
  memory: "M6 4h12v16l-6-4-6 4z",
  clock: "M12 4a8 8 0 1 1 0 16 8 8 0 0 1 0-16zM12 8v4l3 2",
  channels: "M12 12v.1M8.5 15.5a5 5 0 0 1 0-7M15.5 8.5a5 5 0 0 1 0 7M5.5 18.5a9.2 9.2 0 0 1 0-13M18.5 5.5a9.2 9.2 0 0 1 0 13",
  devices: "M4 5h11v8H4zM7 17h5M9.5 13v4M16 9h5v11h-5zM18.5 17v.1",
  agents: "M6 8h12v10H6zM12 8V5M9.5 12.5v1M14.5 12.5v1M3.5 12v3M20.5 12v3",
  skills: "M12 4l2.4 5 5.6.7-4.1 3.8 1.1 5.5-5-2.8-5 2.8 1.1-5.5L4 9.7 9.6 9z",
  logs: "M5 6h14M5 10h10M5 14h14M5 18h7",
  config: "M4 7h9M17 7h3M4 17h3M11 17h9M15 5v4M9 15v4",
  play: "M8 6l10 6-10 6z",
  pause: "M9 6v12M15 6v12",
  trash: "M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13",
  microphone: "M12 4a3 3 0 0 1 3 3v5a3 3 0 0 1-6 0V7a3 3 0 0 1 3-3zM6 11a6 6 0 0 0 12 0M12 17v3",
  speaker: "M5 10v4h3l4 4V6l-4 4zM16 9a4 4 0 0 1 0 6",
  refresh: "M5 12a7 7 0 0 1 12-5l2 2M19 5v4h-4M19 12a7 7 0 0 1-12 5l-2-2M5 19v-4h4",
};

export function Icon({ name }: { name: string }) {
  return (
    <svg class={`icon icon-${name}`} viewBox="0 0 24 24" aria-hidden="true">
      <path d={PATHS[name] ?? ""} />
    </svg>
  );
}
