// The pages that are loaded together, with the first of them.

export { AgentsPage, SkillsPage } from "./agents";
export { ChannelsPage } from "./channels";
export { DevicesPage } from "./devices";
export { LogsPage } from "./logs";
export { MemoryPage } from "./memory";
export { Prompts } from "./prompts";
export { RunningPage } from "./running";
export { SchedulesPage } from "./schedules";
export { Setup } from "./setup";
export { StatusPage } from "./status";
export { WorkspacePage } from "./workspace";
