/** Tells the counts on demand, in a worker whose own listener knows no such message: to be imported before that listener. */

import { counts } from './count';

addEventListener('message', event => {
  if (event.data?.type !== 'counts') return;
  event.stopImmediatePropagation();
  postMessage({ type: 'counts', counts });
});
