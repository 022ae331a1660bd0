// Mantine's theme from our tokens. theme.test.ts writes its variables into theme.gen.css, because the content policy of
// the pages forbids Mantine to write them at run time.
import { createTheme, type CSSVariablesResolver, type MantineColorsTuple } from '@mantine/core';

const teal: MantineColorsTuple = [
  '#e3f2f0', '#c5e5e1', '#9fd4ce', '#6fc0b7', '#3fa89d', '#1d9085', '#0f766e', '#0f766e', '#0b5f59', '#084842',
];

export const theme = createTheme({
  colors: { teal },
  primaryColor: 'teal',
  primaryShade: { light: 6, dark: 6 },
  fontFamily: 'var(--font)',
  fontFamilyMonospace: 'var(--mono)',
  fontSizes: { xs: '12px', sm: '13px', md: '14px', lg: '16px', xl: '20px' },
  lineHeights: { xs: '16px', sm: '18px', md: '20px', lg: '24px', xl: '28px' },
  spacing: { xs: '4px', sm: '8px', md: '12px', lg: '16px', xl: '24px' },
  radius: { xs: '4px', sm: '6px', md: '6px', lg: '10px', xl: '10px' },
  defaultRadius: 'sm',
  shadows: { xs: 'none', sm: 'var(--shadow)', md: 'var(--shadow)', lg: 'var(--shadow)', xl: 'var(--shadow)' },
  respectReducedMotion: true,
  cursorType: 'pointer',
  // Mantine's own shades lack contrast on our backgrounds: filled white on teal 4 in dark is 2.86 : 1.
  variantColorResolver: ({ variant, color }) => {
    const bad = color === 'red';
    if (variant === 'filled') {
      return {
        background: bad ? 'var(--bad)' : 'var(--accent)',
        hover: bad ? 'var(--bad-hover)' : 'var(--accent-hover)',
        color: bad ? 'var(--on-bad)' : 'var(--on-accent)',
        border: '1px solid transparent',
      };
    }
    if (variant === 'subtle' || variant === 'transparent') {
      return {
        background: 'transparent',
        hover: 'var(--surface-2)',
        color: bad ? 'var(--bad)' : 'var(--text-2)',
        border: '1px solid transparent',
      };
    }
    return {
      background: 'var(--surface)',
      hover: 'var(--surface-2)',
      color: bad ? 'var(--bad)' : 'var(--text)',
      border: '1px solid var(--line)',
    };
  },
});

const ours = {
  '--mantine-color-body': 'var(--surface)',
  '--mantine-color-text': 'var(--text)',
  '--mantine-color-dimmed': 'var(--text-3)',
  '--mantine-color-bright': 'var(--text)',
  '--mantine-color-placeholder': 'var(--text-3)',
  '--mantine-color-anchor': 'var(--link)',
  '--mantine-color-error': 'var(--bad)',
  '--mantine-color-default': 'var(--surface)',
  '--mantine-color-default-hover': 'var(--surface-2)',
  '--mantine-color-default-color': 'var(--text)',
  '--mantine-color-default-border': 'var(--line-strong)',
  '--mantine-color-disabled': 'var(--surface-2)',
  '--mantine-color-disabled-color': 'var(--text-3)',
  '--mantine-color-disabled-border': 'var(--line)',
  '--mantine-color-dark-4': 'var(--line)',
  '--mantine-color-dark-6': 'var(--surface)',
  '--mantine-color-dark-5': 'var(--surface-2)',
  '--mantine-primary-color-filled': 'var(--accent)',
  '--mantine-primary-color-filled-hover': 'var(--accent-hover)',
  '--mantine-primary-color-light': 'var(--accent-soft)',
  '--mantine-primary-color-light-color': 'var(--link)',
  '--mantine-primary-color-contrast': 'var(--on-accent)',
};

export const variables: CSSVariablesResolver = () => ({ variables: {}, light: ours, dark: ours });
