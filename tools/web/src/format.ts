// Numbers in the form that people read.

export const count = (n: number): string => n.toLocaleString("en");

export function compact(n: number): string {
  if (Math.abs(n) < 10_000) return count(Math.round(n));
  return n.toLocaleString("en", { notation: "compact", maximumFractionDigits: 1 });
}

export function number(n: number | null | undefined, digits = 3): string {
  if (n === null || n === undefined || !isFinite(n)) return "–";
  if (Number.isInteger(n) && Math.abs(n) < 1e9) return count(n);
  const size = Math.abs(n);
  return size >= 1000 ? compact(n) : size >= 0.001 ? String(Number(n.toPrecision(digits))) : n.toExponential(1);
}

/** As the terminal writes them (bytes_text() of scenarios/observe/output_text.hpp). */
export function bytes(n: number): string {
  const { unit, size } = byteUnit(n);
  return `${size === 1 ? n : (n / size).toFixed(1)} ${unit}`;
}

/** The unit in which `n` bytes are written. */
export function byteUnit(n: number): { unit: string; size: number } {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
  let i = 0, size = 1;
  while (n / size >= 1024 && i < units.length - 1) {
    size *= 1024;
    i++;
  }
  return { unit: units[i], size };
}

export function rate(bits: number): string {
  const units = ["bit/s", "kbit/s", "Mbit/s", "Gbit/s"];
  let i = 0;
  while (bits >= 1000 && i < units.length - 1) {
    bits /= 1000;
    i++;
  }
  return `${Number(bits.toPrecision(3))} ${units[i]}`;
}

export function seconds(s: number | null | undefined): string {
  if (s === null || s === undefined || !isFinite(s)) return "–";
  const sign = s < 0 ? "−" : "";
  s = Math.abs(s);
  if (s === 0) return "0 s";
  if (s < 1e-3) return `${sign}${Number((s * 1e6).toPrecision(3))} µs`;
  if (s < 1) return `${sign}${Number((s * 1e3).toPrecision(3))} ms`;
  if (s < 60) return `${sign}${Number(s.toPrecision(3))} s`;
  const whole = Math.round(s);
  const two = (n: number) => String(n).padStart(2, "0");
  if (whole < 3600) return `${sign}${Math.floor(whole / 60)} min ${two(whole % 60)} s`;
  if (whole < 86400) return `${sign}${Math.floor(whole / 3600)} h ${two(Math.floor((whole % 3600) / 60))} min`;
  return `${sign}${Math.floor(whole / 86400)} d ${two(Math.floor((whole % 86400) / 3600))} h`;
}

export const percent = (share: number): string => `${Number((100 * share).toPrecision(share < 0.0995 ? 2 : 3))} %`;

/** A unit in which times up to `end` seconds read well. */
export function timeUnit(end: number): { unit: string; seconds: number } {
  if (end > 3 * 86400) return { unit: "days", seconds: 86400 };
  if (end > 3 * 3600) return { unit: "hours", seconds: 3600 };
  if (end > 180) return { unit: "minutes", seconds: 60 };
  return { unit: "seconds", seconds: 1 };
}

export const words = (name: string): string => name.replace(/_/g, " ");
