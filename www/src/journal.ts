/**
 * The last two steps of a run that trains, in a file of this browser's private file system: a step takes a fraction of a millisecond there,
 * and several in IndexedDB, spread over other threads and processes. Whoever reads takes what is newer than what is kept there.
 *
 * The file has two halves, written in turns, so that one is whole when the tab ends while the other is written. In each: how long the text
 * is (four bytes, little-endian), the text (JSON), and from `TEXT` bytes on the checkpoint, which is written first.
 */

import type { Report } from './protocol';

/** What is known of a run after a step. */
interface Standing {
  id: string;
  /** Milliseconds since 1970; later ones are larger. */
  updated: number;
  /** Steps done. */
  iteration: number;
  /** Of the last steps: all that are not kept elsewhere. */
  reports: Report[];
}

/** What was read: not checked yet. */
export interface Entry extends Standing {
  checkpoint: Blob;
}

/** What this uses of `FileSystemSyncAccessHandle`, which is there in workers alone. */
interface OpenFile {
  write(bytes: Uint8Array, options: { at: number }): number;
  truncate(length: number): void;
  close(): void;
}

/** Where the files are: one for each worker that trains. */
const FOLDER = 'turnwise-journal';

/** Bytes for the text and its length. */
const TEXT = 1 << 18;

const LENGTH = 4;

export class Journal {
  private readonly text = new Uint8Array(TEXT);
  private readonly encoder = new TextEncoder();
  /** Bytes of one half, and which one is written next. */
  private half = 0;
  private next = 0;

  private constructor(private readonly file: OpenFile) {}

  /** A new file, for a worker alone; null where the browser has none. */
  static async open(): Promise<Journal | null> {
    try {
      const file = await (await folder()).getFileHandle(crypto.randomUUID(), { create: true });
      return new Journal(await (file as unknown as { createSyncAccessHandle(): Promise<OpenFile> }).createSyncAccessHandle());
    } catch {
      return null;
    }
  }

  /**
   * Writes where a run stands, its reports as JSON, in place of the step before the last one. False where that is too much for the file.
   * Fails where the browser has no room.
   */
  write({ id, updated, iteration }: Omit<Standing, 'reports'>, reports: string[], checkpoint: Uint8Array): boolean {
    const known = JSON.stringify({ id, updated, iteration });
    const whole = `${known.slice(0, -1)},"reports":[${reports.join(',')}]}`;
    const { read, written } = this.encoder.encodeInto(whole, this.text.subarray(LENGTH));
    if (read < whole.length) return false;
    new DataView(this.text.buffer).setUint32(0, written, true);
    this.fit(TEXT + checkpoint.length);
    const start = this.next * this.half;
    this.next = 1 - this.next;
    this.all(checkpoint, start + TEXT);
    this.all(this.text.subarray(0, LENGTH + written), start);
    return true;
  }

  /** Forgets what is in it: it is kept elsewhere. */
  clear(): void {
    if (this.half === 0) return;
    this.text.fill(0, 0, LENGTH);
    for (const start of [0, this.half]) this.all(this.text.subarray(0, LENGTH), start);
  }

  close(): void {
    this.file.close();
  }

  private fit(half: number): void {
    if (half === this.half) return;
    this.file.truncate(0);
    this.file.truncate(2 * half);
    this.half = half;
  }

  private all(bytes: Uint8Array, at: number): void {
    if (this.file.write(bytes, { at }) < bytes.length) throw new Error('the journal has no room');
  }
}

/** What all files hold, the latest first; nothing where the browser has none. */
export async function journalled(): Promise<Entry[]> {
  return (await files()).flatMap(({ entries }) => entries).sort((a, b) => b.updated - a.updated);
}

/** Removes the files in which nothing is wanted any more. Those that a worker has open stay. */
export async function tidyJournals(wanted: (entry: Entry) => boolean): Promise<void> {
  for (const { name, entries, unread } of await files()) {
    if (unread || entries.some(wanted)) continue;
    await folder()
      .then(found => found.removeEntry(name))
      .catch(() => {});
  }
}

async function folder(): Promise<FileSystemDirectoryHandle> {
  return (await navigator.storage.getDirectory()).getDirectoryHandle(FOLDER, { create: true });
}

/** A file and what it holds; nothing where it could not be read just now. */
interface Found {
  name: string;
  entries: Entry[];
  unread: boolean;
}

async function files(): Promise<Found[]> {
  const found: Found[] = [];
  try {
    for await (const file of (await folder()).values()) {
      if (file.kind !== 'file') continue;
      const one: Found = { name: file.name, entries: [], unread: false };
      found.push(one);
      try {
        const whole = await file.getFile();
        const half = whole.size / 2;
        for (const start of [0, half]) {
          const entry = await read(whole.slice(start, start + half));
          if (entry) one.entries.push(entry);
        }
      } catch {
        // It is written just now: what is kept elsewhere counts.
        one.unread = true;
      }
    }
  } catch {
    // There are no files in this browser, or none for this page.
  }
  return found;
}

/** One half; null where it holds nothing that can be read. */
async function read(half: Blob): Promise<Entry | null> {
  if (half.size < TEXT) return null;
  const length = new DataView(await half.slice(0, LENGTH).arrayBuffer()).getUint32(0, true);
  if (length === 0 || length > TEXT - LENGTH) return null;
  try {
    const { id, updated, iteration, reports } = JSON.parse(await half.slice(LENGTH, LENGTH + length).text());
    if (typeof id !== 'string' || !Number.isFinite(updated) || !Number.isSafeInteger(iteration)) return null;
    return { id, updated, iteration, reports: Array.isArray(reports) ? reports : [], checkpoint: half.slice(TEXT) };
  } catch {
    return null;
  }
}
