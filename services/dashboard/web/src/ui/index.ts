// The kit that pages are made of. Line charts are in ./LineChart: they bring uPlot along.
export { BarChart, type BarSeries, type Bucket } from './BarChart';
export { Copy } from './Copy';
export * from './controls';
export * from './choices';
export { DataTable, type Column } from './DataTable';
export { Confirm, Dialog, DialogActions, SidePanel } from './Dialog';
export { AmountField, Form, PasswordField, TextareaField, TextField, useFields, type FieldErrors, type Fields } from './fields';
export { ActionMenu, IconButton, type MenuAction } from './Menu';
export { Segments } from './Segments';
export { Tip } from './Tip';
export { Money } from './Money';
export { Filters, Page } from './Page';
export { Freshness, polling } from './polling';
export { RangePicker, rangeLabel } from './RangePicker';
export { Code, CodeTabs, Secret, type CodeTab } from './Secret';
export * from './states';
export { Time, useNow, useZone, ZoneProvider } from './Time';
export { toast } from './toast';
