/** Starts the page: the form's wasm module and the recorded run load side by side while the frame is already there. */

import { mount } from 'svelte';
import App from './App.svelte';
import './app.css';
import { unknownView } from './state/embed';
import { experiment } from './state/experiment.svelte';
import { kept } from './state/kept.svelte';
import { notices } from './state/notices.svelte';
import { recordings } from './state/recordings.svelte';
import { series } from './state/series.svelte';
import { trainer } from './state/trainer.svelte';
import { view } from './state/view.svelte';

experiment.onLinkOpened = () => series.halt();
trainer.onStopped = (run, paused) => series.stopped(run, paused);
trainer.shownIteration = () => view.batch?.iteration ?? null;
trainer.pace.drawing = () => view.drawing;

if (unknownView !== null) notices.show({ id: 'embed', text: words => words.embed.unknown(unknownView ?? '') });

const target = document.getElementById('app');
if (target) {
  target.replaceChildren();
  mount(App, { target });
}

/** Leaving asks back only while something is trained or would be lost. */
addEventListener('beforeunload', event => {
  if (trainer.asksOnLeaving) event.preventDefault();
});

void experiment.load();
void kept.load();
recordings.begin(location.hash);
