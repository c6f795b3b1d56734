// Modules of the page that need no page, for tests that call them directly: bundled as the page's build does it.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const require = createRequire(new URL('../../www/package.json', import.meta.url));

/** What the named files of `www/src` export, together. */
export async function modules(...names) {
  const { build } = await import(pathToFileURL(require.resolve('vite')).href);
  const folder = mkdtempSync(join(tmpdir(), 'turnwise-modules-'));
  try {
    const entry = join(folder, 'entry.js');
    const path = name => fileURLToPath(new URL(`../../www/src/${name}`, import.meta.url));
    writeFileSync(entry, names.map(name => `export * from ${JSON.stringify(path(name))};\n`).join(''));
    const lib = { entry, formats: ['es'], fileName: 'all' };
    await build({ root: folder, configFile: false, logLevel: 'error', build: { outDir: join(folder, 'out'), lib, minify: false } });
    return await import(pathToFileURL(join(folder, 'out', 'all.mjs')).href);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
