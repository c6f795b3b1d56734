/** Whether a run whose device was lost asks for another, or goes on on the CPU. */

import type { DeviceChoice, DeviceReport } from '../protocol';

/** A device that is lost again this soon is not asked for once more. In milliseconds. */
const LOST_AGAIN = 60_000;

export class DeviceLosses {
  /** When one was lost last, and whether the run went on on the CPU for that. */
  private last = Number.NEGATIVE_INFINITY;
  private fellBack = false;

  /** One was lost just now. */
  note(): void {
    const now = performance.now();
    this.fellBack ||= now - this.last < LOST_AGAIN;
    this.last = now;
  }

  /** Another run begins. */
  clear(): void {
    this.fellBack = false;
  }

  /** What the run is to compute on, of what the person chose. */
  instead(chosen: DeviceChoice): DeviceChoice {
    return this.fellBack ? 'cpu' : chosen;
  }

  /** A device as the page shows it: the CPU was not chosen where it took the place of one that was lost twice. */
  told(device: DeviceReport): DeviceReport {
    return this.fellBack ? { ...device, reason: 'device_lost' } : device;
  }
}
