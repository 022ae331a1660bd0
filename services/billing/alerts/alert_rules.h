// When a notice is due: a state machine without I/O, with hysteresis so that a value that moves
// around a limit makes one notice.
#pragma once

#include <vector>

#include "services/billing/alerts/alert_types.h"

namespace tollgate::billing::alerts {

struct Step {
  AlertState next;      // with the version of the state that it replaces
  bool notify = false;  // else only the state changes
};

// The states that change. states: those that have a row.
std::vector<Step> Decide(const AlertSetting& setting, const Facts& facts,
                         const std::vector<AlertState>& states);

}  // namespace tollgate::billing::alerts
