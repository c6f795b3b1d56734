// Compresses every file below a folder the way static hosts do, leaves FILE.br beside each file that gains by it, and prints
// one line a file: path, bytes, bytes after gzip -9, bytes after brotli -q 11 (tab-separated).
// usage: node compress.mjs FOLDER CACHE   (CACHE keeps results by content: brotli takes half a minute for the engine)
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, relative, sep } from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';

const [folder, cache] = process.argv.slice(2);
mkdirSync(cache, { recursive: true });

// 24 is the largest window that browsers accept in a transfer.
const brotli = (bytes) =>
  brotliCompressSync(bytes, {
    params: {
      [constants.BROTLI_PARAM_QUALITY]: 11,
      [constants.BROTLI_PARAM_LGWIN]: 24,
      [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length,
    },
  });

function cached(bytes, suffix, compress) {
  const file = join(cache, createHash('sha256').update(bytes).digest('hex') + suffix);
  if (existsSync(file)) return readFileSync(file);
  const result = compress(bytes);
  writeFileSync(file, result);
  return result;
}

const files = readdirSync(folder, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile() && !entry.name.endsWith('.br'))
  .map((entry) => join(entry.parentPath ?? entry.path, entry.name))
  .sort();
for (const file of files) {
  const bytes = readFileSync(file);
  const small = cached(bytes, '.br', brotli);
  const zipped = cached(bytes, '.gz', (input) => gzipSync(input, { level: 9 }));
  if (small.length < bytes.length) writeFileSync(`${file}.br`, small);
  const path = relative(folder, file).split(sep).join('/');
  console.log([path, bytes.length, zipped.length, Math.min(small.length, bytes.length)].join('\t'));
}
