// When a notice is due: a state machine without I/O, with hysteresis, so that a value moving around
// a limit makes only one notice.
#pragma once

#include <vector>

#include "services/billing/alerts/alert_types.h"

namespace tollgate::billing::alerts {

struct Step {
  AlertState next;      // has the version of the state that it replaces
  bool notify = false;  // else only the state changes
};

// Returns the states to change. states: the stored states.
std::vector<Step> Decide(const AlertSetting& setting, const Facts& facts,
                         const std::vector<AlertState>& states);

}  // namespace tollgate::billing::alerts
