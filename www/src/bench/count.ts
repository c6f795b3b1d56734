/** Counts what a worker asks of WebGPU, by wrapping its calls. To be imported before anything that uses them. */

/** Calls so far. */
export interface Counts {
  dispatches: number;
  submits: number;
  buffers: number;
  bindGroups: number;
  pipelines: number;
  writes: number;
  reads: number;
}

export const counts: Counts = { dispatches: 0, submits: 0, buffers: 0, bindGroups: 0, pipelines: 0, writes: 0, reads: 0 };

/** Wraps methods of a class that the browser may lack. */
function wrap(name: string, methods: Record<string, keyof Counts>): void {
  const prototype = (
    globalThis as unknown as Record<string, { prototype?: Record<string, (...args: unknown[]) => unknown> } | undefined>
  )[name]?.prototype;
  if (!prototype) return;
  for (const [method, counter] of Object.entries(methods)) {
    const original = prototype[method];
    if (!original) continue;
    prototype[method] = function (this: unknown, ...args: unknown[]) {
      counts[counter] += 1;
      return original.apply(this, args);
    };
  }
}

wrap('GPUComputePassEncoder', { dispatchWorkgroups: 'dispatches', dispatchWorkgroupsIndirect: 'dispatches' });
wrap('GPUQueue', { submit: 'submits', writeBuffer: 'writes' });
wrap('GPUDevice', {
  createBuffer: 'buffers',
  createBindGroup: 'bindGroups',
  createComputePipeline: 'pipelines',
  createComputePipelineAsync: 'pipelines',
});
wrap('GPUBuffer', { mapAsync: 'reads' });
