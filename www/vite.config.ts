import { existsSync, readFileSync, statSync } from 'node:fs';
import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig, type Plugin } from 'vite';

/** The policy of the built page: nothing but its own files, and wasm. Left out in development, where Vite injects styles. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self' 'wasm-unsafe-eval'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "worker-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
].join('; ');

const contentSecurityPolicy: Plugin = {
  name: 'content-security-policy',
  apply: 'build',
  transformIndexHtml: () => [
    { tag: 'meta', attrs: { 'http-equiv': 'Content-Security-Policy', content: POLICY }, injectTo: 'head-prepend' },
  ],
};

/** Size of an engine, so that its download has an end to be measured against even where the server compresses it. */
function bytes(engine: string): number {
  const file = new URL(`src/wasm/${engine}/turnwise_${engine}_bg.wasm`, import.meta.url);
  return existsSync(file) ? statSync(file).size : 0;
}

/** Versions of what the page of measurements compares. */
const { version, devDependencies } = JSON.parse(readFileSync(new URL('package.json', import.meta.url), 'utf8'));
const PACKAGES = {
  turnwise: version,
  '@jax-js/jax': devDependencies['@jax-js/jax'],
  '@tensorflow/tfjs-core': devDependencies['@tensorflow/tfjs-core'],
};

export default defineConfig({
  base: './',
  plugins: [svelte(), contentSecurityPolicy],
  define: {
    ENGINE_BYTES: JSON.stringify({ cpu: bytes('cpu'), webgpu: bytes('gpu') }),
    PACKAGES: JSON.stringify(PACKAGES),
  },
  worker: { format: 'es' },
  build: {
    target: 'es2022',
    assetsInlineLimit: 0,
    chunkSizeWarningLimit: 300,
    modulePreload: { polyfill: false },
    rollupOptions: { input: ['index.html', 'bench.html'] },
  },
});
