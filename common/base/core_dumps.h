// Core files of this process. They would contain its secrets and prompts.
#pragma once

namespace tollgate {

// From now on a crash writes no core file, whatever the machine's limits and core handler, and
// other processes of the same user cannot read this process's memory. Call it first in main: before
// secrets are read and before threads start.
void DenyCoreDumps();

// Undoes DenyCoreDumps: the machine's settings apply again.
void AllowCoreDumps();

}  // namespace tollgate
