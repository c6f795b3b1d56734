/** Arrays that nobody needs any more, to be written into again: memory that is new costs more than what is written into it. */
export class Spare<T extends { readonly length: number }> {
  private readonly arrays: T[] = [];

  /** `make` makes one that is new; at most `most` are kept. */
  constructor(
    private readonly make: (length: number) => T,
    private readonly most: number,
  ) {}

  get count(): number {
    return this.arrays.length;
  }

  /** An array of a length; what is in it is to be written over. */
  room(length: number): T {
    const place = this.arrays.findIndex(array => array.length === length);
    return (place < 0 ? null : this.take(place)) ?? this.make(length);
  }

  /** Takes one out, whatever its length. */
  take(place = 0): T | null {
    return this.arrays.splice(place, 1)[0] ?? null;
  }

  /** Nobody needs it any more. The last ones are kept. */
  keep(array: T): void {
    this.arrays.unshift(array);
    this.arrays.length = Math.min(this.arrays.length, this.most);
  }
}

/** Shorter arrays of numbers are made anew. */
export const WORTH_KEEPING = 4096;
