/** Starts the page of measurements. */

import { mount } from 'svelte';
import '../app.css';
import Bench from './Bench.svelte';

const target = document.getElementById('app');
if (target) {
  target.replaceChildren();
  mount(Bench, { target });
}
