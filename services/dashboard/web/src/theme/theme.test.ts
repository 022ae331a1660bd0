import { convertCssVariables, DEFAULT_THEME, defaultCssVariablesResolver, mergeMantineTheme } from '@mantine/core';
import { expect, it } from 'vitest';
import { theme, variables } from './theme';

// Only the differences from default-css-variables.layer.css, plus our variables for both schemes.
it('theme.gen.css is what the theme says (vitest run -u writes it)', async () => {
  const merged = mergeMantineTheme(DEFAULT_THEME, theme);
  const all = defaultCssVariablesResolver(merged);
  const usual = defaultCssVariablesResolver(DEFAULT_THEME);
  const own = variables(merged);
  const part = (name: 'variables' | 'light' | 'dark') => ({
    ...Object.fromEntries(Object.entries(all[name]).filter(([key, value]) => (usual[name] as Record<string, string>)[key] !== value)),
    ...own[name],
  });
  const css = convertCssVariables({ variables: part('variables'), light: part('light'), dark: part('dark') }, ':root');
  await expect(`/* Written by theme.test.ts. */\n${css.replaceAll(';', ';\n').replaceAll('{', '{\n')}\n`).toMatchFileSnapshot('./theme.gen.css');
});
