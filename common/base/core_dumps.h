// Core files of this process: they hold every secret and prompt that it knew.
#pragma once

namespace tollgate {

// From now on a crash writes no core file, whatever the limits of the machine and its handler of
// core files are, and other processes of the same user cannot read the memory of this one. First
// in main, before any secret is read; before threads.
void DenyCoreDumps();

// Undoes DenyCoreDumps: the machine decides again.
void AllowCoreDumps();

}  // namespace tollgate
