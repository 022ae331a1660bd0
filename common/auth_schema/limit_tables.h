// Schema for limits by model and plans. The columns hold lines of services/auth/domain/limit_set.h.
#pragma once

namespace tollgate::auth_schema {

inline constexpr char kLimitsByModel[] = R"(
CREATE TABLE plan (
  plan_id {text} NOT NULL PRIMARY KEY,
  limits {text} NOT NULL,
  shadow {int} NOT NULL
) {strict};
ALTER TABLE workspace ADD COLUMN plan {text} NOT NULL DEFAULT '';
ALTER TABLE workspace ADD COLUMN model_limits {text} NOT NULL DEFAULT '';
ALTER TABLE virtual_key ADD COLUMN model_limits {text} NOT NULL DEFAULT '';
CREATE INDEX workspace_plan ON workspace (plan);
)";

}  // namespace tollgate::auth_schema
