// The data that the program sends: the sections of scenarios/page/run_view.hpp.

export interface Group {
  name: string;
  region: string;
  device: string;
  role: string;
  nat: string;
  count: number;
  samples_per_second: number;
  up: number;
  down: number;
}

export interface Run {
  state: "running" | "ended" | "interrupted" | "unfinished";
  name: string;
  description: string;
  world: string;
  seed: number;
  time: number;
  stop_time: number;
  shoal: string;
  build: string;
  data_digest: string;
  node: string;
  workload: string;
  method: string;
  parameters: number;
  epochs_planned: number;
  target_batch: number;
  metrics_interval: string;
  command: string;
  join: Join | null;
  compression: { codec: string; means: string; bits: number | null; means_bits: number | null; ratio: number | null };
  groups: Group[];
  notes: string[];
}

/** How another host joins this cluster. */
export interface Join {
  /** What all type alike. */
  command: string;
  insecure: boolean;
  shards: number;
  dial: string[];
  /** Names of hosts that are there. */
  taken: string[];
}

/** One life of one host of a cluster. */
export interface Node_ {
  name: string;
  group: string;
  region: string;
  address: string;
  directory: string;
  state: "running" | "ended" | "interrupted" | "silent" | "linked";
  began: number;
  last: number;
  epoch: number;
  rounds: number;
  not_ok: number;
  samples: number;
  sent: number;
  rate: number | null;
}

export interface Summary {
  event_hash: string | null;
  state_hash: string | null;
  virtual_seconds: number;
  wall_seconds: number;
  peak_rss_bytes: number;
  epochs: number;
  samples: number;
  loss: { first: number | null; final: number | null; baseline: number | null; bigram: number | null };
  rounds: { ok: number; partial: number; split: number; failed: number; by_reason: Record<string, number>; mean_seconds: number | null };
  bytes_sent: { data: number; averaging: number; state: number; control: number };
  peers: { joined: number; left: number; alive: number };
  invariants: Record<string, { checked: number; violated: number; first_violation?: string }>;
}

export type Columns = Record<string, (number | null)[]>;

export interface Sessions {
  by: "host" | "group";
  bin: number;
  bins: number;
  end: number;
  states: string[];
  rows: { name: string; group: string; region: string; hosts: number; shares: string[] }[];
  ends: [string, number, string][];
}

interface Contribution {
  name: string;
  region: string;
  samples: number;
  rounds: number;
  seconds: number;
  loss: number | null;
  sent: number;
}

export interface Participants {
  samples: number;
  hosts: (Contribution & { group: string; alive: boolean; lives: number })[];
  more: number;
  groups: (Contribution & { hosts: number; alive: number })[];
  loss_bin: number;
  losses: { name: string; bins: [number, number][] }[];
}

export interface Transfers {
  count: number;
  bytes: number;
  rows_in_all: number;
  rows: {
    from: string;
    to: string;
    type: string;
    number: number;
    count: number;
    bytes: number;
    begun: number;
    arrives: number;
    cut: number;
    waited: number;
    why: string;
    held: number;
  }[];
}

export interface KeptRound {
  number: number;
  epoch: number;
  group: string;
  started: number;
  ended: number;
  members: number;
  outcome: string;
  reason: string;
  samples: number;
  first_of_two: boolean;
  ends: [string, string, string][];
  transfers: Transfers | null;
}

export interface Rounds {
  total: number;
  by_outcome: Record<string, number>;
  by_reason: Record<string, number>;
  points_left_out: boolean;
  points: [number, number, number, number, number, string][];
  kept: KeptRound[];
  attempts: { epoch: number; reason: string; first: number; last: number; count: number }[];
  transfers_left_out: number;
  /** When recording them ended because there were as many as are kept; null: all are there. */
  transfers_until: number | null;
}

export interface Fault {
  begin: number;
  end: number | null;
  number: number;
  action: string;
  count: number;
  hosts: string[];
}

/** How many hosts said something, and the first of them with the times. */
export interface Reports {
  count: number;
  first: [number, string][];
}

/** The case against one member. */
export interface Case {
  number: number;
  member: string;
  begun: number;
  /** What the proof shows; empty without a ban. */
  deed: string;
  proof: string;
  proven: Reports;
  bans: Reports;
  accusations: { why: string; by: Reports }[];
  rounds: { count: number; last: [number, string][] };
}

export interface Cases {
  total: number;
  rows: Case[];
}

/** A round of security.kind btard. Members are indices into the names. */
export interface GuardedRound {
  at: number;
  epoch: number;
  committed: number;
  /** Validator, target, and "right", "wrong" or "" for no report. */
  audits: [number, number, string][];
  accusations: [number, number, string][];
  verdicts: [number, string][];
  distances: [number, number | null][];
}

export interface Guard {
  rounds: GuardedRound[];
  names: string[];
}

export interface Traffic {
  kinds: string[];
  hosts: { name: string; group: string; bytes: number[] }[];
  more: number;
  regions: { from: string; to: string; bytes: number[] }[];
}

export interface Links {
  bin: number;
  bins: number;
  until: number | null;
  more: number;
  rows: { name: string; rate: number; mean: number; use: string }[];
}

/** Bulk from region to region over time. */
export interface Flows {
  regions: string[];
  /** One way, in seconds; on the diagonal the delay inside a region. */
  delays: number[][];
  bin: number;
  until: number | null;
  /** `line` has shares of `most`, the bytes of the fullest bin. From and to are indices of regions. */
  pairs: { from: number; to: number; bytes: number; most: number; line: string }[];
}

/** The samples of each host or group by bin of time. */
export interface Growth {
  bin: number;
  rows: { name: string; samples: number[] }[];
}

export interface Comparison {
  predicted: { path: string };
  actual: { path: string };
  figures: { section: string; name: string; key: string; unit?: string; predicted: number | null; actual: number | null; error: number | null; tolerance: number | null; within?: boolean }[];
  [more: string]: unknown;
}

/** What the model drew for the captions, one below the other, after each checkpoint. */
export interface Pictures {
  captions: string[];
  drawn: { epoch: number; png: string }[];
}

/**
 * The stages of a pipeline: hosts by stage and bin, the share of their time that they computed, [stage, host, seconds held, now], and moves [time, host, from, to].
 */
export interface Stages {
  bin: number;
  hosts: number[][];
  /** Null where it is not known; runs of an earlier version have none at all. */
  loads?: (number | null)[][];
  places: [number, string, number, boolean][];
  moved: number;
  moves: [number, string, number, number][];
}

/** One expert of a mixture. Lines have a digit for the square root of the share of `most`, for each bin. */
export interface Expert {
  /** The layer, then the coordinates. */
  place: number[];
  rows: number;
  requests: number;
  steps: number;
  copied: number;
  deaths: number;
  revivals: number;
  /** Rows in the bin; at its end: steps, and those that no copy has. */
  lines: [string, string, string];
  /** From, to (null: now), index of the host, revived from a copy, ended with its host, steps at the beginning. */
  holds: [number, number | null, number, boolean, boolean, number][];
}

export interface Experts {
  bin: number;
  most: [number, number, number];
  hosts: string[];
  experts: Expert[];
}

export interface View {
  run: Run;
  scenario: string;
  summary: Summary | null;
  series: Columns;
  epochs: Columns;
  sessions: Sessions;
  participants: Participants;
  rounds: Rounds;
  faults: Fault[];
  cases?: Cases;
  guard?: Guard;
  pictures?: Pictures;
  stages?: Stages;
  experts?: Experts;
  traffic: Traffic | null;
  links: Links | null;
  /** Runs of an earlier version do not have these three. */
  flows?: Flows | null;
  growth?: Growth;
  /** The newest arrivals and ends: time, host, reason of the end ("": it came). */
  latest?: [number, string, string][];
  comparison?: Comparison;
  nodes?: Node_[];
}

export const outcomes = ["ok", "partial", "split", "failed"];

const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const values = new Float32Array(128);
[...digits].forEach((c, i) => (values[c.charCodeAt(0)] = i / 61));
/** The share of 0 to 1 that a character of a line of bins stands for. */
export const share = (line: string, bin: number): number => (bin < line.length ? values[line.charCodeAt(bin)] : 0);
