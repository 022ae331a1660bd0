// Before anything is painted: the chosen colours, else those of the system.
(() => {
  let scheme = 'auto';
  try {
    scheme = localStorage.getItem('tollgate-scheme') || 'auto';
  } catch {}
  if (scheme !== 'light' && scheme !== 'dark') scheme = matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light';
  document.documentElement.setAttribute('data-mantine-color-scheme', scheme);
})();
