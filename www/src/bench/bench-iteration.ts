/** The page's own training worker, with its WebGPU calls counted. The order of these lines matters. */

import './count';
import './answer-counts';
import '../worker';
