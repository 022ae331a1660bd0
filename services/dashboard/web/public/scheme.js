// Sets the chosen colour scheme, else the system's, before the first paint.
(() => {
  let scheme = 'auto';
  try {
    scheme = localStorage.getItem('tollgate-scheme') || 'auto';
  } catch {}
  if (scheme !== 'light' && scheme !== 'dark') scheme = matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light';
  document.documentElement.setAttribute('data-mantine-color-scheme', scheme);
})();
