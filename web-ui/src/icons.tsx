// Icons, drawn with the colour of the text around them.

const PATHS: Record<string, string> = {
  menu: "M4 6h16M4 12h16M4 18h16",
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
  down: "M6 10l6 6 6-6",
};

export function Icon({ name }: { name: string }) {
  return (
    <svg class={`icon icon-${name}`} viewBox="0 0 24 24" aria-hidden="true">
      <path d={PATHS[name] ?? ""} />
    </svg>
  );
}
