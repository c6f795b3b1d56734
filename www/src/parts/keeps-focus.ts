/** A button that is disabled while something goes on has the focus again afterwards, if it had it and nobody moved it meanwhile. */
export function keepsFocus(button: HTMLButtonElement) {
  let had = false;
  const observer = new MutationObserver(() => {
    // Told before the browser takes the focus away.
    if (button.disabled) had ||= document.activeElement === button;
    else if (had) {
      had = false;
      if (document.activeElement === document.body || document.activeElement === null) button.focus({ preventScroll: true });
    }
  });
  observer.observe(button, { attributes: true, attributeFilter: ['disabled'] });
  return { destroy: () => observer.disconnect() };
}
