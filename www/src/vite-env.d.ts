/** Bytes of the training module as built, 0 when it was not there. */
declare const ENGINE_BYTES: number;
