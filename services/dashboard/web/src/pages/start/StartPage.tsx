import { Navigate } from '@tanstack/react-router';
import { usePerson } from '@/api/session';
import { startPath } from '@/app/places';

// Where a person begins: the workspace of the last time, else the first one.
export default function StartPage() {
  const person = usePerson();
  return <Navigate to={startPath(person)} replace />;
}
