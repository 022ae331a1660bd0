// Calls of the dashboard's own services: facts for the summary of a workspace, and audit entries
// for changes in processes without a database.
#pragma once

#include "services/auth/admin/calls.h"
#include "tollgate/auth/v1/front.pb.h"

namespace tollgate::auth {

Result<v1::ReadWorkspaceFactsResponse> ReadWorkspaceFacts(
    AuthStore& store, const v1::ReadWorkspaceFactsRequest& request);

// Fails with a catalogued error for a request that is malformed.
Result<v1::NoteChangeResponse> NoteChange(AuthStore& store, const v1::NoteChangeRequest& request);

}  // namespace tollgate::auth
