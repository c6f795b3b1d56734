/** Starts the page: the form's wasm module and the recorded run load side by side while the frame is already there. */

import { mount } from 'svelte';
import App from './App.svelte';
import './app.css';
import { experiment } from './state/experiment.svelte';
import { trainer } from './state/trainer.svelte';
import { view } from './state/view.svelte';

experiment.onLinkOpened = () => trainer.halt();
trainer.shownIteration = () => view.batch?.iteration ?? null;
trainer.drawing = () => view.drawing;

const target = document.getElementById('app');
if (target) {
  target.replaceChildren();
  mount(App, { target });
}

/** Leaving asks back only while a run would be lost. */
addEventListener('beforeunload', event => {
  if (trainer.unfinished) event.preventDefault();
});

void experiment.load();
void trainer.loadRecorded();
