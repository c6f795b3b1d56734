// What the tests on files share: the menu Save / open, downloads, and dropping of files as a person does it.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';

/** Opens the menu and gives a locator for what is in it. */
export async function menu(page, name = 'Save / open') {
  await page.getByRole('button', { name }).click();
  const panel = page.getByRole('dialog', { name: 'Save, open and share' });
  await panel.getByRole('button', { name: 'Copy link', exact: true }).waitFor();
  return panel;
}

/** The name and bytes of the file that `act` downloads. */
export async function download(page, act) {
  const [found] = await Promise.all([page.waitForEvent('download', { timeout: 60_000 }), act()]);
  return { name: found.suggestedFilename(), bytes: readFileSync(await found.path()) };
}

/** Saves an entry of the menu. */
export async function saved(page, entry) {
  const panel = await menu(page);
  const file = await download(page, () => panel.getByRole('button', { name: entry, exact: true }).click());
  await panel.getByText(`Saved: ${file.name}`).waitFor();
  await page.keyboard.press('Escape');
  return { name: file.name, text: file.bytes.toString('utf8') };
}

/** Drops a file on the page. */
export async function drop(page, name, text, type = '') {
  const handle = await page.evaluateHandle(
    ([name, text, type]) => {
      const data = new DataTransfer();
      data.items.add(new File([text], name, { type }));
      return data;
    },
    [name, text, type],
  );
  await page.dispatchEvent('body', 'dragenter', { dataTransfer: handle });
  await page.getByTestId('drop-layer').waitFor();
  await page.dispatchEvent('body', 'dragover', { dataTransfer: handle });
  await page.dispatchEvent('body', 'drop', { dataTransfer: handle });
  await page.getByTestId('drop-layer').waitFor({ state: 'detached' });
}

/** Chooses a file in the menu; `file` is what Playwright takes. */
export async function choose(page, file) {
  const panel = await menu(page);
  const [chooser] = await Promise.all([page.waitForEvent('filechooser'), panel.getByRole('button', { name: 'Open a file…' }).click()]);
  await chooser.setFiles(file);
}

/** Width and height of a PNG. */
export function pngSize(bytes) {
  assert.deepEqual([...bytes.subarray(0, 8)], [137, 80, 78, 71, 13, 10, 26, 10], 'the signature of PNG');
  return { width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) };
}
