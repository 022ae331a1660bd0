import { Navigate } from '@tanstack/react-router';
import { paths } from '@/app/paths';
import { lastWorkspace } from '@/app/places';

// Where the payment provider's pages lead back to (billing.payments.success_url): to the payments of the workspace that
// the customer left.
export default function PaidPage() {
  const workspace = lastWorkspace();
  return <Navigate to={workspace ? paths.billing(workspace) : '/'} replace />;
}
