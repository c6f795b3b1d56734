/** Gives the person a file. */

/** Starts the download of a file that was made here. */
export function save(name: string, parts: BlobPart[], type: string): void {
  const url = URL.createObjectURL(new Blob(parts, { type }));
  const anchor = document.createElement('a');
  anchor.href = url;
  anchor.download = name;
  anchor.click();
  // The browser has taken hold of it by then.
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

/** A name for files of a run: `turnwise-search-seed-0-curves.csv`. */
export function fileName({ environment, seed }: { environment: string; seed: number }, what: string, ending: string): string {
  return `turnwise-${environment.replaceAll(/[^\w-]/g, '')}-seed-${seed}-${what}.${ending}`;
}
